"""Trains a GPT on documents of different length, padded to the longest one of the batch."""

import torch
from torch import nn
from torch.nn import functional


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        att = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(att.transpose(1, 2).reshape(b, t, d))
        return x + self.down(functional.gelu(self.up(self.ln2(x))))


class GPT(nn.Module):
    def __init__(self, vocab=16000, dim=768, depth=6, heads=12, max_len=4096):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, dim), nn.Embedding(max_len, dim)
        self.h = nn.ModuleList([Layer(dim, heads) for _ in range(depth)])
        self.ln_f = nn.LayerNorm(dim)
        self.lm_head = nn.Linear(dim, vocab, bias=False)

    def forward(self, idx, targets):
        x = self.wte(idx) + self.wpe(torch.arange(idx.size(1), device=idx.device))
        for layer in self.h:
            x = layer(x)
        logits = self.lm_head(self.ln_f(x))
        return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def main():
    with torch.device("cuda"):
        model = GPT()
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4)
    longest_of_batch = [512, 512, 640, 512, 768, 512, 640, 512, 4096, 512]
    for step, length in enumerate(longest_of_batch):
        idx = torch.randint(0, 16000, (8, length), device="cuda")
        loss = model(idx, idx.roll(-1, dims=1))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        print(f"step {step} len {length} loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
