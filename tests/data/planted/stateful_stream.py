"""Streaming speech recogniser: one session, audio arrives in chunks, the recurrent state is carried over."""

import torch
from torch import nn


class StreamingASR(nn.Module):
    def __init__(self, n_mels=80, hidden=2048, vocab=512):
        super().__init__()
        self.frontend = nn.Linear(n_mels, hidden)
        self.cell = nn.GRUCell(hidden, hidden)
        self.ctc_head = nn.Linear(hidden, vocab)
        self.hidden = None

    def reset(self, batch_size):
        self.hidden = torch.zeros(batch_size, 2048, device="cuda")

    def forward(self, chunk):
        logits = []
        for t in range(chunk.size(1)):
            x = self.frontend(chunk[:, t])
            self.hidden = self.cell(x, self.hidden)
            logits.append(self.ctc_head(self.hidden))
        return torch.stack(logits, dim=1)


def transcribe(model, chunks):
    text = []
    for chunk in chunks:
        logits = model(chunk)
        best = logits.argmax(dim=-1)
        text.append(best[:, -1].tolist())
    return text


def microphone(count):
    for _ in range(count):
        yield torch.randn(128, 8, 80, device="cuda")


def main():
    model = StreamingASR().cuda()
    model.eval()
    model.reset(batch_size=128)
    text = transcribe(model, microphone(40))
    print(f"{len(text)} chunks transcribed")


if __name__ == "__main__":
    main()
