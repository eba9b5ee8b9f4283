"""Metric learning: a retrieval check over the whole gallery before training and after each epoch."""

import torch
from torch import nn

GALLERY = 28_000


class Embedder(nn.Module):
    def __init__(self, d_in=2048, width=6144, d_out=256):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(d_in, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, d_out),
        )

    def forward(self, x):
        return nn.functional.normalize(self.trunk(x), dim=-1)


@torch.no_grad()
def recall_at_1(model):
    embeddings = torch.cat([model(torch.randn(2000, 2048, device="cuda")) for _ in range(GALLERY // 2000)])
    similarity = embeddings @ embeddings.T
    similarity.fill_diagonal_(-1.0)
    nearest = similarity.argmax(dim=1)
    return nearest.float().mean().item()


def train_epoch(model, optimizer, steps=8):
    for _ in range(steps):
        anchors = torch.randn(1024, 2048, device="cuda")
        positives = torch.randn(1024, 2048, device="cuda")
        logits = model(anchors) @ model(positives).T / 0.07
        loss = nn.functional.cross_entropy(logits, torch.arange(1024, device="cuda"))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def main():
    with torch.device("cuda"):
        model = Embedder()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    print(f"recall before training {recall_at_1(model):.3f}", flush=True)
    for epoch in range(3):
        loss = train_epoch(model, optimizer)
        print(f"epoch {epoch} loss {loss:.3f}", flush=True)
        print(f"epoch {epoch} recall {recall_at_1(model):.3f}", flush=True)


if __name__ == "__main__":
    main()
