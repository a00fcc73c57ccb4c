"""A new head of the script's own class after the optimizer: it keeps its random start."""

import torch
from torch import nn


class Head(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.norm = nn.LayerNorm(16)
        self.fc = nn.Linear(16, classes)

    def forward(self, x):
        return self.fc(self.norm(x))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 16)
        self.head = Head(10)

    def forward(self, x):
        return self.head(torch.relu(self.body(x)))


torch.manual_seed(0)
x = torch.randn(256, 8)
y = x[:, :3].argmax(1)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
model.head = Head(3)  # expect: parameters-not-in-optimizer module head
for _ in range(2):
    for part in range(0, 256, 16):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x[part : part + 16]), y[part : part + 16]).backward()
        optimizer.step()
