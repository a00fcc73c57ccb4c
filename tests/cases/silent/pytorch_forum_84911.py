"""All was to be trained but the batch norms; the condition is the other way round."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.conv2, self.bn2 = nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16)
        self.head = nn.Linear(16, 4)

    def forward(self, x):
        x = torch.relu(self.bn1(self.conv1(x)))
        return self.head(torch.relu(self.bn2(self.conv2(x))).mean((2, 3)))


torch.manual_seed(0)
net = Net()  # expect: only-norms-trained module Net
for name, parameter in net.named_parameters():
    parameter.requires_grad = "bn" in name
optimizer = torch.optim.SGD((p for p in net.parameters() if p.requires_grad), lr=0.05)
for step in range(60):
    y = torch.randint(0, 4, (32,))
    x = torch.randn(32, 1, 8, 8) + y.view(-1, 1, 1, 1)
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    optimizer.step()
