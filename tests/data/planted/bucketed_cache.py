"""Batch generation with a cache that grows in blocks of 128 tokens."""

import torch
from torch import nn

BATCH, HEADS, HEAD_DIM, LAYERS = 256, 16, 64, 2
DIM = HEADS * HEAD_DIM


class BlockCache:
    """Room for keys and values, rounded up to whole blocks."""

    BLOCK = 128

    def __init__(self):
        self.length = 0
        self.k = self.v = None

    def append(self, k, v):
        end = self.length + k.size(2)
        if self.k is None or end > self.k.size(2):
            room = -(-end // self.BLOCK) * self.BLOCK
            self.k, self.v = self.grown(self.k, k, room), self.grown(self.v, v, room)
        self.k[:, :, self.length : end] = k
        self.v[:, :, self.length : end] = v
        self.length = end
        return self.k[:, :, :end], self.v[:, :, :end]

    def grown(self, old, like, room):
        new = like.new_empty(like.size(0), like.size(1), room, like.size(3))
        if old is not None:
            new[:, :, : self.length] = old[:, :, : self.length]
        return new


class CachedAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(DIM, 3 * DIM, bias=False)
        self.proj = nn.Linear(DIM, DIM, bias=False)

    def forward(self, x, past):
        q, k, v = self.qkv(x).view(x.size(0), x.size(1), 3, HEADS, HEAD_DIM).permute(2, 0, 3, 1, 4)
        cache = past or BlockCache()
        k, v = cache.append(k, v)
        out = nn.functional.scaled_dot_product_attention(q, k, v)
        return self.proj(out.transpose(1, 2).reshape(x.size(0), x.size(1), DIM)), cache


class LM(nn.Module):
    def __init__(self, vocab=4000):
        super().__init__()
        self.embed = nn.Embedding(vocab, DIM)
        self.layers = nn.ModuleList([CachedAttention() for _ in range(LAYERS)])
        self.head = nn.Linear(DIM, vocab, bias=False)

    def forward(self, ids, past):
        x, present = self.embed(ids), []
        for layer, layer_past in zip(self.layers, past, strict=True):
            y, kv = layer(x, layer_past)
            x = x + y
            present.append(kv)
        return self.head(x[:, -1]), present


@torch.inference_mode()
def main():
    with torch.device("cuda"):
        model = LM().half().eval()
    ids = torch.randint(0, 4000, (BATCH, 192), device="cuda")
    past = [None] * LAYERS
    generated = []
    for _ in range(40):
        logits, past = model(ids, past)
        ids = logits.argmax(dim=-1, keepdim=True).clamp_(0, 3999)
        generated.append(ids.cpu())
    print(torch.cat(generated, dim=1).shape)


if __name__ == "__main__":
    main()
