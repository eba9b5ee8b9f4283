"""Chat server: the key/value cache is extended token by token up to a window; prompts have many lengths."""

import torch
from torch import nn

WINDOW = 1024
LAYERS = 4
HEADS = 16
HEAD_DIM = 64


class Attention(nn.Module):
    def __init__(self, dim=HEADS * HEAD_DIM):
        super().__init__()
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.proj = nn.Linear(dim, dim, bias=False)
        self.k_cache = None
        self.v_cache = None

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, HEADS, HEAD_DIM).permute(2, 0, 3, 1, 4)
        if self.k_cache is not None and self.k_cache.size(0) == b:
            k = torch.cat([self.k_cache, k], dim=2)[:, :, -WINDOW:]
            v = torch.cat([self.v_cache, v], dim=2)[:, :, -WINDOW:]
        self.k_cache, self.v_cache = k, v
        scores = (q @ k.transpose(-1, -2)) / HEAD_DIM**0.5
        out = scores.softmax(dim=-1) @ v
        return self.proj(out.transpose(1, 2).reshape(b, t, d))


class ChatModel(nn.Module):
    def __init__(self, vocab=8000, dim=HEADS * HEAD_DIM):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.layers = nn.ModuleList([Attention() for _ in range(LAYERS)])
        self.lm_head = nn.Linear(dim, vocab, bias=False)

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = x + layer(x)
        return self.lm_head(x[:, -1])


@torch.inference_mode()
def generate(model, prompt_len, new_tokens):
    ids = torch.randint(0, 8000, (8, prompt_len), device="cuda")
    logits = model(ids)
    for _ in range(new_tokens):
        next_id = logits.argmax(dim=-1, keepdim=True).clamp_(0, 7999)
        logits = model(next_id)
    return next_id


def main():
    model = ChatModel().cuda().eval()
    prompt_lens = [64, 96, 64, 192, 128, 256, 160, 384, 320, 512, 96, 64, 448, 256, 128]
    for turn in range(36):
        generate(model, prompt_lens[turn % len(prompt_lens)], new_tokens=12)
    print("36 turns answered, window", model.layers[0].k_cache.size(2))


if __name__ == "__main__":
    main()
