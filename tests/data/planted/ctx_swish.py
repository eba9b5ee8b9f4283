"""Trains a small tagger whose activation is a hand-written autograd.Function."""

import torch
from torch import nn

device = torch.device("cuda")


class SwishFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, beta):
        sig = torch.sigmoid(beta * x)
        out = x * sig
        ctx.beta = beta
        ctx.sig = sig
        ctx.out = out
        return out

    @staticmethod
    def backward(ctx, grad_output):
        grad = ctx.sig + ctx.beta * ctx.out * (1 - ctx.sig)
        return grad_output * grad, None


class Swish(nn.Module):
    def __init__(self, beta=1.0):
        super().__init__()
        self.beta = beta

    def forward(self, x):
        return SwishFunction.apply(x, self.beta)


class Tagger(nn.Module):
    def __init__(self, vocab=8000, dim=512, hidden=2048, tags=24):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.fc1 = nn.Linear(dim, hidden)
        self.act1 = Swish()
        self.fc2 = nn.Linear(hidden, hidden)
        self.act2 = Swish()
        self.out = nn.Linear(hidden, tags)

    def forward(self, tokens):
        h = self.act1(self.fc1(self.embed(tokens)))
        h = self.act2(self.fc2(h))
        return self.out(h)


def main():
    torch.manual_seed(0)
    model = Tagger().to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(30):
        tokens = torch.randint(0, 8000, (32, 128), device=device)
        tags = torch.randint(0, 24, (32, 128), device=device)
        optimizer.zero_grad()
        logits = model(tokens)
        loss = criterion(logits.flatten(0, 1), tags.flatten())
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step} loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
