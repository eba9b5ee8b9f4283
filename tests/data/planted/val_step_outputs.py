"""Segmentation training in the style of a trainer class with hooks."""

import torch
from torch import nn

NUM_CLASSES = 21


class SegModule(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, 32, 3, padding=1),
            nn.BatchNorm2d(32),
            nn.ReLU(inplace=True),
            nn.Conv2d(32, NUM_CLASSES, 1),
        )
        self.criterion = nn.CrossEntropyLoss()
        self.validation_step_outputs = []

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        images, masks = batch
        return self.criterion(self(images), masks)

    def validation_step(self, batch, batch_idx):
        images, masks = batch
        logits = self(images)
        loss = self.criterion(logits, masks)
        output = {"val_loss": loss, "logits": logits, "n": images.size(0)}
        self.validation_step_outputs.append(output)
        return output

    def on_validation_epoch_end(self):
        last = self.validation_step_outputs[-4:]
        avg_loss = torch.stack([out["val_loss"] for out in last]).mean()
        seen = sum(out["n"] for out in last)
        return {"val_loss": avg_loss, "seen": seen}


class Trainer:
    def __init__(self, max_epochs):
        self.max_epochs = max_epochs

    def batches(self, count):
        for _ in range(count):
            images = torch.rand(8, 3, 256, 256, device="cuda")
            masks = torch.randint(0, NUM_CLASSES, (8, 256, 256), device="cuda")
            yield images, masks

    def fit(self, module):
        module.cuda()
        optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3)
        for epoch in range(self.max_epochs):
            module.train()
            for batch_idx, batch in enumerate(self.batches(5)):
                loss = module.training_step(batch, batch_idx)
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                optimizer.step()
            module.eval()
            with torch.no_grad():
                for batch_idx, batch in enumerate(self.batches(4)):
                    module.validation_step(batch, batch_idx)
                metrics = module.on_validation_epoch_end()
            print(f"epoch {epoch}: val_loss {metrics['val_loss'].item():.4f} on {metrics['seen']} images")


if __name__ == "__main__":
    Trainer(max_epochs=8).fit(SegModule())
