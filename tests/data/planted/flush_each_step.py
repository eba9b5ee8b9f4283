"""Question answering fine-tune that frees the cache after each step."""

import torch
from torch import nn


class Reader(nn.Module):
    def __init__(self, vocab=16000, dim=1024, depth=3):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.layers = nn.ModuleList(
            [
                nn.TransformerEncoderLayer(dim, 16, 4 * dim, dropout=0.0, batch_first=True)
                for _ in range(depth)
            ]
        )
        self.span = nn.Linear(dim, 2)

    def forward(self, input_ids):
        x = self.embed(input_ids)
        for layer in self.layers:
            x = layer(x)
        start, end = self.span(x).unbind(dim=-1)
        return start, end


def main():
    with torch.device("cuda"):
        model = Reader()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-5)
    criterion = nn.CrossEntropyLoss()
    running = 0.0
    for _ in range(25):
        input_ids = torch.randint(0, 16000, (16, 384), device="cuda")
        answers = torch.randint(0, 384, (2, 16), device="cuda")
        start, end = model(input_ids)
        loss = (criterion(start, answers[0]) + criterion(end, answers[1])) / 2
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        running += loss.item()
        del input_ids, answers, start, end, loss
        torch.cuda.empty_cache()
    print(f"mean loss {running / 25:.4f}")


if __name__ == "__main__":
    main()
