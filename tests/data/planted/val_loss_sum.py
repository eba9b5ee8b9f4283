"""Fine-tunes a text classifier; the validation loop keeps a running loss."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.fc1 = nn.Linear(dim, 4 * dim)
        self.fc2 = nn.Linear(4 * dim, dim)

    def forward(self, x):
        return x + self.fc2(torch.relu(self.fc1(self.norm(x))))


class Classifier(nn.Module):
    def __init__(self, vocab=16000, dim=512, depth=2, num_labels=5):
        super().__init__()
        self.embeddings = nn.Embedding(vocab, dim)
        self.blocks = nn.Sequential(*[Block(dim) for _ in range(depth)])
        self.classifier = nn.Linear(dim, num_labels)

    def forward(self, input_ids):
        return self.classifier(self.blocks(self.embeddings(input_ids)).mean(dim=1))


def fake_loader(batches, batch_size):
    for _ in range(batches):
        input_ids = torch.randint(0, 16000, (batch_size, 256), device="cuda")
        yield input_ids, torch.randint(0, 5, (batch_size,), device="cuda")


def train_epoch(model, criterion, optimizer):
    model.train()
    running_loss = 0.0
    for input_ids, labels in fake_loader(6, 16):
        optimizer.zero_grad()
        loss = criterion(model(input_ids), labels)
        loss.backward()
        optimizer.step()
        running_loss += loss.item()
    return running_loss / 6


def validate(model, criterion):
    model.eval()
    val_loss = 0
    correct = 0
    for input_ids, labels in fake_loader(20, 16):
        output = model(input_ids)
        loss = criterion(output, labels)
        val_loss += loss
        correct += (output.argmax(dim=1) == labels).sum().item()
    return val_loss / 20, correct / (20 * 16)


def main():
    model = Classifier().cuda()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-5)
    for epoch in range(3):
        train_loss = train_epoch(model, criterion, optimizer)
        val_loss, acc = validate(model, criterion)
        print(f"epoch {epoch}: train {train_loss:.3f} val {val_loss.item():.3f} acc {acc:.2f}")


if __name__ == "__main__":
    main()
