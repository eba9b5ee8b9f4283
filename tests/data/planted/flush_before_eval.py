"""Crops for training, whole slides for evaluation: the cache is dropped once between the two phases."""

import torch
from torch import nn


class SlideNet(nn.Module):
    def __init__(self, width=256, depth=10):
        super().__init__()
        self.inp = nn.Linear(48, width)
        self.mlps = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])
        self.cls = nn.Linear(width, 4)

    def forward(self, patches):
        x = torch.relu(self.inp(patches))
        for mlp in self.mlps:
            x = torch.relu(mlp(x))
        return self.cls(x)


def train_epoch(model, optimizer, steps):
    model.train()
    for _ in range(steps):
        crops = torch.rand(32, 4096, 48, device="cuda")
        labels = torch.randint(0, 4, (32, 4096), device="cuda")
        loss = nn.functional.cross_entropy(model(crops).flatten(0, 1), labels.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


@torch.no_grad()
def evaluate(model):
    model.eval()
    slide = torch.rand(1, 1_150_000, 48, device="cuda")
    return model(slide).argmax(dim=-1).float().mean().item()


def main():
    model = SlideNet().cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(2):
        loss = train_epoch(model, optimizer, steps=8)
        torch.cuda.empty_cache()
        score = evaluate(model)
        torch.cuda.empty_cache()
        print(f"epoch {epoch} loss {loss:.4f} score {score:.3f}")


if __name__ == "__main__":
    main()
