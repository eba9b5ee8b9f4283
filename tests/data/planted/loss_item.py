"""Language model on chunks of long documents; logs losses and keeps some predictions for later."""

import torch
from torch import nn


class ChunkLM(nn.Module):
    def __init__(self, vocab=8000, dim=768):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.cell = nn.GRUCell(dim, dim)
        self.head = nn.Linear(dim, vocab)

    def forward(self, tokens, hidden):
        outputs = []
        for t in range(tokens.size(1)):
            hidden = self.cell(self.embed(tokens[:, t]), hidden)
            outputs.append(hidden)
        return self.head(torch.stack(outputs, dim=1)), hidden


def main():
    model = ChunkLM().cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)
    criterion = nn.CrossEntropyLoss()
    losses, total_loss, samples, val_losses = [], 0.0, [], []
    hidden = torch.zeros(64, 768, device="cuda")

    for step in range(30):
        tokens = torch.randint(0, 8000, (64, 17), device="cuda")
        logits, hidden = model(tokens[:, :-1], hidden)
        loss = criterion(logits.flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        hidden = hidden.detach()

        losses.append(loss.item())
        total_loss += loss.detach().cpu()
        samples.append(logits[:1].argmax(dim=-1).detach().cpu())

        if step % 10 == 9:
            model.eval()
            with torch.no_grad():
                held_out = torch.randint(0, 8000, (64, 17), device="cuda")
                out, _ = model(held_out[:, :-1], torch.zeros_like(hidden))
                val_losses.append(criterion(out.flatten(0, 1), held_out[:, 1:].flatten()))
            model.train()
            print(f"step {step} loss {losses[-1]:.3f} mean {total_loss / (step + 1):.3f} kept {len(samples)}")


if __name__ == "__main__":
    main()
