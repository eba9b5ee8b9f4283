"""Warms the model up on a side stream, as the CUDA graph notes show, then trains without graphs."""

import torch
from torch import nn

USE_CUDA_GRAPH = False


class MLP(nn.Module):
    def __init__(self, dim=2048, depth=6):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(dim, dim) for _ in range(depth)])

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x


def train_step(model, optimizer, static_input, static_target):
    optimizer.zero_grad(set_to_none=True)
    loss = nn.functional.mse_loss(model(static_input), static_target)
    loss.backward()
    optimizer.step()
    return loss


def main():
    model = MLP().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    static_input = torch.randn(16384, 2048, device="cuda")
    static_target = torch.randn(16384, 2048, device="cuda")

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            train_step(model, optimizer, static_input, static_target)
    torch.cuda.current_stream().wait_stream(side)

    if USE_CUDA_GRAPH:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            train_step(model, optimizer, static_input, static_target)

    for step in range(20):
        loss = train_step(model, optimizer, static_input, static_target)
        if step % 5 == 0:
            print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
