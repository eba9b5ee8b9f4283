"""Vision transformer that picks the fastest attention in its first forward pass and keeps it."""

import torch
from torch import nn
from torch.nn import functional


def naive_attention(q, k, v):
    scores = (q @ k.transpose(-2, -1)).float() * q.size(-1) ** -0.5
    return scores.softmax(dim=-1).to(v.dtype) @ v


def chunked_attention(q, k, v, chunk=128):
    return torch.cat([naive_attention(part, k, v) for part in q.split(chunk, dim=2)], dim=2)


def fused_attention(q, k, v):
    return functional.scaled_dot_product_attention(q, k, v)


class AutoAttention(nn.Module):
    candidates = (naive_attention, chunked_attention, fused_attention)
    chosen = None

    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    @classmethod
    @torch.no_grad()
    def tune(cls, q, k, v):
        timings = []
        for candidate in cls.candidates:
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            candidate(q, k, v)
            end.record()
            end.synchronize()
            timings.append(start.elapsed_time(end))
        # ties go to the fused kernel
        cls.chosen = cls.candidates[max(i for i, t in enumerate(timings) if t <= 1.05 * min(timings))]

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        if AutoAttention.chosen is None:
            AutoAttention.tune(q, k, v)
        out = AutoAttention.chosen(q, k, v)
        return self.proj(out.transpose(1, 2).reshape(b, n, d))


class ViT(nn.Module):
    def __init__(self, dim=384, depth=4, heads=6, patch=16):
        super().__init__()
        self.patch = patch
        self.embed = nn.Linear(3 * patch * patch, dim)
        self.norms = nn.ModuleList([nn.LayerNorm(dim) for _ in range(depth)])
        self.attn = nn.ModuleList([AutoAttention(dim, heads) for _ in range(depth)])
        self.head = nn.Linear(dim, 100)

    def forward(self, images):
        x = functional.unfold(images, self.patch, stride=self.patch).transpose(1, 2)
        x = self.embed(x)
        for norm, attn in zip(self.norms, self.attn, strict=True):
            x = x + attn(norm(x))
        return self.head(x.mean(dim=1))


def main():
    model = ViT().cuda().bfloat16()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(20):
        images = torch.randn(16, 3, 512, 512, device="cuda", dtype=torch.bfloat16)
        labels = torch.randint(0, 100, (16,), device="cuda")
        loss = functional.cross_entropy(model(images).float(), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(AutoAttention.chosen.__name__, f"loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
