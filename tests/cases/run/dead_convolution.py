"""The biases of a convolution start far below zero: its filters never answer."""

import torch
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 16, 3), nn.ReLU(), nn.Conv2d(16, 32, 3), nn.ReLU())  # expect: dead-units module features.2
        self.classify = nn.Linear(32, 4)

    def forward(self, images):
        return self.classify(self.features(images).mean((2, 3)))


net = Net()
with torch.no_grad():
    net.features[2].bias -= 8.0
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
labels = torch.arange(4).repeat(8)
pictures = torch.randn(32, 1, 10, 10) + labels[:, None, None, None]
for _ in range(50):
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(pictures), labels).backward()
    optimizer.step()
