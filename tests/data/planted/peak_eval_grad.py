"""UNet-like denoiser; validated every ten steps on a larger batch."""

import torch
from torch import nn
from torch.nn import functional


class ResBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.GroupNorm(8, width)
        self.conv = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x):
        return x + self.conv(functional.silu(self.norm(x)))


class Denoiser(nn.Module):
    def __init__(self, width=64, depth=4):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, padding=1)
        self.blocks = nn.ModuleList([ResBlock(width) for _ in range(depth)])
        self.out = nn.Conv2d(width, 3, 1)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.out(x)


def add_noise(images):
    return images + 0.1 * torch.randn_like(images)


def train_step(model, optimizer):
    clean = torch.rand(16, 3, 128, 128, device="cuda")
    loss = functional.mse_loss(model(add_noise(clean)), clean)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def validate(model):
    model.eval()
    psnr = []
    for _ in range(4):
        clean = torch.rand(32, 3, 128, 128, device="cuda")
        restored = model(add_noise(clean))
        psnr.append(-10 * functional.mse_loss(restored, clean).add(1e-8).log10().item())
    model.train()
    return sum(psnr) / len(psnr)


def main():
    model = Denoiser().cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-4)
    for step in range(1, 31):
        loss = train_step(model, optimizer)
        if step % 10 == 0:
            print(f"step {step} loss {loss:.4f} psnr {validate(model):.2f}")


if __name__ == "__main__":
    main()
