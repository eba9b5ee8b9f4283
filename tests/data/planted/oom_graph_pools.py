"""Captures one CUDA graph for each batch size that the server may see."""

import torch
from torch import nn


class Head(nn.Module):
    def __init__(self, dim=2048, vocab=32000):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(dim, 4 * dim), nn.SiLU(), nn.Linear(4 * dim, dim), nn.SiLU())
        self.lm_head = nn.Linear(dim, vocab, bias=False)

    def forward(self, x):
        return self.lm_head(self.body(x)).softmax(dim=-1)


class GraphRunner:
    def __init__(self, model, max_batch, seq=16):
        self.model = model
        self.seq = seq
        self.inputs = torch.zeros(max_batch, seq, 2048, device="cuda", dtype=torch.bfloat16)
        self.graphs = {}
        self.outputs = {}

    def capture(self, batch_size):
        static_input = self.inputs[:batch_size]
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self.model(static_input)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.outputs[batch_size] = self.model(static_input)[:, -1].argmax(dim=-1)
        self.graphs[batch_size] = graph

    def __call__(self, x):
        size = next(b for b in sorted(self.graphs) if b >= x.size(0))
        self.inputs[: x.size(0)].copy_(x)
        self.graphs[size].replay()
        return self.outputs[size][: x.size(0)]


@torch.inference_mode()
def main():
    with torch.device("cuda"):
        model = Head().bfloat16().eval()
    runner = GraphRunner(model, max_batch=256)
    for batch_size in [1, 2, 4, 8, *range(16, 257, 16)]:
        runner.capture(batch_size)
        print("captured", batch_size, flush=True)
    for request in range(20):
        x = torch.randn(1 + 12 * request, 16, 2048, device="cuda", dtype=torch.bfloat16)
        runner(x)


if __name__ == "__main__":
    main()
