"""Two-rank training script; rank 0 evaluates on what the others send. Ranks come from the environment."""

import os

import torch
from torch import nn

RANK = int(os.environ.get("RANK", "0"))
WORLD_SIZE = int(os.environ.get("WORLD_SIZE", "2"))


class Model(nn.Module):
    def __init__(self, d_in=512, hidden=2048, d_out=1000):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(d_in, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.fc = nn.Linear(hidden, d_out)

    def forward(self, x):
        return self.fc(self.body(x))


def all_gather(tensor):
    """What torch.distributed would put into the list, without the other process."""
    parts = [torch.empty_like(tensor) for _ in range(WORLD_SIZE)]
    parts[RANK].copy_(tensor)
    return parts


class Evaluator:
    def __init__(self):
        self.reset()

    def reset(self):
        self.predictions = []
        self.references = []

    def add(self, logits, labels):
        gathered = all_gather(logits)
        gathered_labels = all_gather(labels)
        if RANK == 0:
            self.predictions.extend(gathered)
            self.references.extend(gathered_labels)

    def compute(self):
        if RANK != 0:
            return None
        hits = [
            (p.argmax(dim=1) == r).float().mean()
            for p, r in zip(self.predictions, self.references, strict=True)
        ]
        return torch.stack(hits).mean().item()


def main():
    torch.manual_seed(1234 + RANK)
    model = Model().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    evaluator = Evaluator()
    for step in range(24):
        x = torch.randn(4096, 512, device="cuda")
        y = torch.randint(0, 1000, (4096,), device="cuda")
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 4 == 3:
            evaluator.reset()
            with torch.no_grad():
                for _ in range(12):
                    x = torch.randn(4096, 512, device="cuda")
                    y = torch.randint(0, 1000, (4096,), device="cuda")
                    evaluator.add(model(x), y)
            accuracy = evaluator.compute()
            if RANK == 0:
                print(f"step {step} loss {loss.item():.3f} accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()
