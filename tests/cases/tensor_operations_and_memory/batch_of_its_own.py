"""A batch whose own methods change it in place."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader


class Batch:
    def __init__(self, rows):
        self.images = torch.stack([r[0] for r in rows])
        self.boxes = torch.stack([r[1] for r in rows])
        self.labels = torch.tensor([r[2] for r in rows])

    def to(self, device):
        self.images = self.images.to(device)
        self.boxes = self.boxes.to(device)
        self.labels = self.labels.to(device)

    def float(self):
        self.images = self.images.float() / 255

    def clamp(self, low, high):
        self.boxes = self.boxes.clamp(low, high)


class Detector(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 16, 3, 2, 1),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, 2, 1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(4),
            nn.Flatten(),
        )
        self.cls, self.box = nn.Linear(512, classes), nn.Linear(512, 4)

    def forward(self, images):
        h = self.body(images)
        return self.cls(h), self.box(h).sigmoid()


class WeightedLoss(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.register_buffer("weight", torch.linspace(0.5, 1.5, classes))

    def forward(self, out, batch):
        scores, boxes = out
        return F.cross_entropy(scores, batch.labels, weight=self.weight) + 5 * F.l1_loss(boxes, batch.boxes)


def rows(n):
    return [(torch.randint(0, 256, (3, 32, 32), dtype=torch.uint8), torch.rand(4) * 1.1, i % 5) for i in range(n)]


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    net, criterion = Detector(5), WeightedLoss(5)
    net.to(device)
    criterion.to(device)
    opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    loader = DataLoader(rows(320), batch_size=32, shuffle=True, collate_fn=Batch)
    for epoch in range(3):
        net.train()
        for batch in loader:
            batch.to(device)
            batch.float()
            batch.clamp(0, 1)
            loss = criterion(net(batch.images), batch)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
