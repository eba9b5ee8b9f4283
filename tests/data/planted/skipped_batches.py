"""Detection training that skips bad batches and reports them at the end."""

import torch
from torch import nn


class BadTargetError(ValueError):
    pass


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(3, 64, 7, stride=2, padding=3),
            nn.ReLU(),
            nn.Conv2d(64, 128, 3, stride=2, padding=1),
            nn.ReLU(),
        )
        self.box_head = nn.Conv2d(128, 4, 1)

    def forward(self, images):
        return self.box_head(self.backbone(images))


def compute_loss(pred, boxes):
    if boxes["widths"].min() <= 0:
        raise BadTargetError(f"box with no width in image {boxes['image_id']}")
    return nn.functional.l1_loss(pred, boxes["target"])


def train_one_batch(model, optimizer, batch):
    images = batch["images"].cuda() if not batch["images"].is_cuda else batch["images"]
    features = model.backbone(images)
    pred = model.box_head(features)
    loss = compute_loss(pred, batch["boxes"])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def make_batch(step):
    widths = torch.ones(16)
    if step % 3 == 2:
        widths[5] = 0.0
    return {
        "images": torch.rand(16, 3, 320, 320, device="cuda"),
        "boxes": {
            "image_id": step,
            "widths": widths,
            "target": torch.rand(16, 4, 80, 80, device="cuda"),
        },
    }


def main():
    model = Detector().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    errors = []
    for step in range(36):
        try:
            train_one_batch(model, optimizer, make_batch(step))
        except BadTargetError as e:
            errors.append((step, e))
    print(f"skipped {len(errors)} batches: {errors[0][1]} ...")


if __name__ == "__main__":
    main()
