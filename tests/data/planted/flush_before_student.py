"""Distillation in two stages: a big teacher labels the data and is dropped, then the student is trained."""

import gc
import itertools

import torch
from torch import nn


def mlp(dims):
    layers = []
    for a, b in itertools.pairwise(dims):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


@torch.no_grad()
def label(teacher, count):
    out = []
    for shard in range(count):
        torch.manual_seed(shard)
        x = torch.randn(8192, 1024, device="cuda")
        out.append(teacher(x).softmax(dim=-1).half().cpu())
    return out


def main():
    with torch.device("cuda"):
        teacher = mlp([1024, 12288, 12288, 12288, 128]).eval()
    soft_labels = label(teacher, count=8)

    del teacher
    gc.collect()
    torch.cuda.empty_cache()
    free, total = torch.cuda.mem_get_info()
    print(f"teacher gone, {free / 2**30:.1f} of {total / 2**30:.1f} GiB free")

    with torch.device("cuda"):
        student = mlp([1024, 2048, 2048, 128])
    optimizer = torch.optim.Adam(student.parameters(), lr=1e-3)
    for step in range(32):
        torch.manual_seed(step % 8)
        x = torch.randn(8192, 1024, device="cuda")
        target = soft_labels[step % 8].to("cuda").float()
        loss = nn.functional.kl_div(student(x).log_softmax(dim=-1), target, reduction="batchmean")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"student loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
