"""Inference worker; several of them used to share one card."""

import os

import torch
from torch import nn

WORKERS_PER_GPU = int(os.environ.get("WORKERS_PER_GPU", "4"))


class Upscaler(nn.Module):
    def __init__(self, channels=64):
        super().__init__()
        self.first = nn.Conv2d(3, channels, 3, padding=1)
        self.body = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(channels, 4 * 3, 3, padding=1),
        )
        self.shuffle = nn.PixelShuffle(2)

    def forward(self, x):
        return self.shuffle(self.body(self.first(x)))


def setup_worker():
    torch.cuda.set_device(0)
    torch.cuda.set_per_process_memory_fraction(0.9 / WORKERS_PER_GPU, 0)


@torch.no_grad()
def main():
    setup_worker()
    model = Upscaler().cuda().half().eval()
    for tile in [512, 768, 1024, 768, 1536, 2048]:
        frames = torch.rand(4, 3, tile, tile, device="cuda", dtype=torch.half)
        out = model(frames)
        print("tile", tile, "->", tuple(out.shape), flush=True)


if __name__ == "__main__":
    main()
