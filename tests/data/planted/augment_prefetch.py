"""Prefetches augmented batches on a side stream; the loss is read once at the end of the epoch."""

import torch
from torch import nn


class Prefetcher:
    def __init__(self, steps, batch_size):
        self.stream = torch.cuda.Stream()
        self.steps = steps
        self.batch_size = batch_size
        self.preload()

    def preload(self):
        if self.steps == 0:
            self.next_input = None
            return
        self.steps -= 1
        with torch.cuda.stream(self.stream):
            images = torch.rand(self.batch_size, 3, 224, 224, device="cuda")
            self.next_input = images.sub_(0.45).div_(0.225)
            self.next_target = torch.randint(0, 100, (self.batch_size,), device="cuda")

    def next(self):
        torch.cuda.current_stream().wait_stream(self.stream)
        batch, target = self.next_input, self.next_target
        if batch is not None:
            batch.record_stream(torch.cuda.current_stream())
            target.record_stream(torch.cuda.current_stream())
        self.preload()
        return batch, target


def build_model():
    return nn.Sequential(
        nn.Conv2d(3, 32, 7, stride=4),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(32, 100),
    )


def main():
    model = build_model().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    criterion = nn.CrossEntropyLoss()
    prefetcher = Prefetcher(steps=32, batch_size=64)
    images, target = prefetcher.next()
    while images is not None:
        loss = criterion(model(images), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        images, target = prefetcher.next()
    print(f"epoch done, loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
