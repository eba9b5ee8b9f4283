"""Image classifier with AdamW, an EMA copy that starts after a few steps, and a regular evaluation."""

import copy

import torch
from torch import nn


class MixerBlock(nn.Module):
    def __init__(self, tokens, dim):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.token_mlp = nn.Sequential(nn.Linear(tokens, 512), nn.GELU(), nn.Linear(512, tokens))
        self.channel_mlp = nn.Sequential(nn.Linear(dim, 2048), nn.GELU(), nn.Linear(2048, dim))

    def forward(self, x):
        x = x + self.token_mlp(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channel_mlp(self.norm2(x))


class Mixer(nn.Module):
    def __init__(self, depth=6, dim=768, classes=1000):
        super().__init__()
        self.patch = nn.Conv2d(3, dim, 16, stride=16)
        self.blocks = nn.Sequential(*[MixerBlock(196, dim) for _ in range(depth)])
        self.head = nn.Linear(dim, classes)

    def forward(self, images):
        x = self.patch(images).flatten(2).transpose(1, 2)
        return self.head(self.blocks(x).mean(dim=1))


class ModelEma:
    def __init__(self, model, decay=0.999):
        self.module = copy.deepcopy(model).eval()
        self.decay = decay

    @torch.no_grad()
    def update(self, model):
        for ema_p, p in zip(self.module.parameters(), model.parameters(), strict=True):
            ema_p.lerp_(p, 1 - self.decay)


@torch.no_grad()
def evaluate(model, batches=3):
    correct = torch.zeros((), device="cuda")
    for _ in range(batches):
        images = torch.rand(64, 3, 224, 224, device="cuda")
        labels = torch.randint(0, 1000, (64,), device="cuda")
        correct += (model(images).argmax(dim=1) == labels).sum()
    return correct.item() / (64 * batches)


def main():
    model = Mixer().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    ema = None
    for step in range(36):
        images = torch.rand(32, 3, 224, 224, device="cuda")
        labels = torch.randint(0, 1000, (32,), device="cuda")
        loss = criterion(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == 12:
            ema = ModelEma(model)
        elif ema is not None:
            ema.update(model)
        if step % 6 == 5:
            acc = evaluate(ema.module if ema else model)
            print(f"step {step} loss {loss.item():.3f} acc {acc:.3f}")


if __name__ == "__main__":
    main()
