"""Fine-tunes a small encoder on a card that somebody else's notebook also uses."""

import torch
from torch import nn


def build(dim=1024, depth=8):
    layers = []
    for _ in range(depth):
        layers += [nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim), nn.LayerNorm(dim)]
    return nn.Sequential(*layers, nn.Linear(dim, 10))


def main():
    device = torch.device("cuda:0")
    torch.manual_seed(1)
    with device:
        net = build()
    optimizer = torch.optim.AdamW(net.parameters(), lr=2e-5)
    loss_fn = nn.CrossEntropyLoss()
    for it in range(12):
        inputs = torch.randn(64, 128, 1024, device=device)
        labels = torch.randint(0, 10, (64, 128), device=device)
        outputs = net(inputs)
        loss = loss_fn(outputs.flatten(0, 1), labels.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"iter {it}: {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
