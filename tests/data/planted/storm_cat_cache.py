"""Batch generation: each new token's keys and values are appended with torch.cat."""

import torch
from torch import nn

BATCH, HEADS, HEAD_DIM, LAYERS = 256, 16, 64, 2
DIM = HEADS * HEAD_DIM


class CachedAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(DIM, 3 * DIM, bias=False)
        self.proj = nn.Linear(DIM, DIM, bias=False)

    def forward(self, x, past):
        q, k, v = self.qkv(x).view(x.size(0), x.size(1), 3, HEADS, HEAD_DIM).permute(2, 0, 3, 1, 4)
        if past is not None:
            k = torch.cat((past[0], k), dim=2)
            v = torch.cat((past[1], v), dim=2)
        out = nn.functional.scaled_dot_product_attention(q, k, v)
        return self.proj(out.transpose(1, 2).reshape(x.size(0), x.size(1), DIM)), (k, v)


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
