"""Speech model on utterances padded to one of four lengths."""

import random

import torch
from torch import nn

BUCKETS = [800, 1000, 1200, 1600]


class Encoder(nn.Module):
    def __init__(self, n_mels=80, dim=512, depth=4):
        super().__init__()
        self.proj = nn.Linear(n_mels, dim)
        self.up = nn.ModuleList([nn.Linear(dim, 4 * dim) for _ in range(depth)])
        self.down = nn.ModuleList([nn.Linear(4 * dim, dim) for _ in range(depth)])
        self.out = nn.Linear(dim, 64)

    def forward(self, mels):
        x = self.proj(mels)
        for up, down in zip(self.up, self.down, strict=True):
            x = x + down(torch.relu(up(x)))
        return self.out(x)


def main():
    random.seed(5)
    torch.cuda.set_per_process_memory_fraction(0.95)
    model = Encoder().cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    for step in range(40):
        frames = next(b for b in BUCKETS if b >= random.randint(600, 1600))
        mels = torch.randn(24, frames, 80, device="cuda")
        targets = torch.randint(0, 64, (24, frames), device="cuda")
        loss = nn.functional.cross_entropy(model(mels).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step} frames {frames} loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
