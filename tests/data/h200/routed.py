"""Programs whose memory depends on values: a mixture of experts in training, and a decoder that stops by itself.

usage: routed.py moe|generate
"""

import sys

import torch
import torch.nn as nn
import torch.nn.functional as F  # noqa: N812


class Experts(nn.Module):
    """Each token goes to its two best experts."""

    def __init__(self, width: int, experts: int) -> None:
        super().__init__()
        self.gate = nn.Linear(width, experts)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, width))
            for _ in range(experts)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        tokens = x.reshape(-1, x.shape[-1])
        weight, chosen = torch.topk(F.softmax(self.gate(tokens), -1), 2, -1)
        out = torch.zeros_like(tokens)
        for number, expert in enumerate(self.experts):
            row, rank = torch.where(chosen == number)
            if row.numel():
                out.index_add_(0, row, expert(tokens[row]) * weight[row, rank, None])
        return x + out.view_as(x)


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(
        self, x: torch.Tensor, past: tuple[torch.Tensor, torch.Tensor] | None
    ) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=past is None)
        return x + self.out(y.transpose(1, 2).reshape(b, t, d)), (k, v)


def moe() -> None:
    model = nn.Sequential(
        nn.Embedding(16000, 1024), *(Experts(1024, 8) for _ in range(4)), nn.Linear(1024, 16000)
    ).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    for step in range(6):
        ids = torch.randint(0, 16000, (16, 512)).cuda()
        loss = F.cross_entropy(model(ids).view(-1, 16000), ids.view(-1))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(step, loss.item())


@torch.no_grad()
def generate() -> None:
    word, head = nn.Embedding(32000, 2048).cuda(), nn.Linear(2048, 32000).cuda()
    layers = nn.ModuleList(Attention(2048, 16) for _ in range(16)).cuda()
    ids = torch.randint(3, 32000, (16, 256)).cuda()
    past: list = [None] * len(layers)
    length = 0
    while length < 512:
        length += 1
        x = word(ids)
        for i, layer in enumerate(layers):
            x, past[i] = layer(x, past[i])
        ids = torch.multinomial(F.softmax(head(x[:, -1]), -1), 1)
        if (ids == 2).all():
            break
    print(length)


torch.manual_seed(0)
{"moe": moe, "generate": generate}[sys.argv[1]]()
