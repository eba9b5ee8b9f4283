"""Sharded forward pass: each layer's weights are unpacked on a communication stream shortly before use."""

import torch

MB = 1024 * 1024
LAYERS = 24
SHARDS = 8


class ShardedStack:
    def __init__(self, dim=4096):
        self.dim = dim
        self.comm = torch.cuda.Stream()
        with torch.cuda.stream(self.comm):
            staging = torch.empty(1600 * MB, dtype=torch.uint8, device="cuda")
            staging.zero_()
            del staging
            self.bucket = torch.zeros(16 * MB // 4, device="cuda")
        self.shards = [
            torch.randn(dim * dim // SHARDS, device="cuda", dtype=torch.bfloat16) for _ in range(LAYERS * 4)
        ]

    def all_gather(self, layer):
        """One rank plays all: the shard is copied where the shards of the others would arrive."""
        self.comm.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.comm):
            flat = torch.empty(4 * self.dim * self.dim, dtype=torch.bfloat16, device="cuda")
            for part in range(4):
                shard = self.shards[layer * 4 + part]
                flat[part * shard.numel() : (part + 1) * shard.numel()].copy_(shard)
        torch.cuda.current_stream().wait_stream(self.comm)
        flat.record_stream(torch.cuda.current_stream())
        return flat

    def forward(self, x):
        for layer in range(LAYERS):
            weights = self.all_gather(layer).view(4, self.dim, self.dim)
            for w in weights:
                x = torch.relu(x @ w)
            del weights, w
        return x


@torch.no_grad()
def main():
    stack = ShardedStack()
    for request in range(8):
        x = torch.randn(512, 4096, device="cuda", dtype=torch.bfloat16)
        y = stack.forward(x)
        print(f"request {request}", tuple(y.shape), flush=True)
    print(y.float().mean().item())


if __name__ == "__main__":
    main()
