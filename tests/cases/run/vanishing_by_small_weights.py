"""Weights filled as a transformer's are, in a tower without norms: signals and gradients shrink alike."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Base(nn.Module):
    spread = 0.02

    def fill(self, part):
        if isinstance(part, nn.Linear):
            nn.init.normal_(part.weight, 0.0, self.spread)
            nn.init.zeros_(part.bias)


class Tower(Base):
    def __init__(self, width, depth):
        super().__init__()
        self.tower = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))  # expect: gradients-vanishing module tower.0
        self.head = nn.Linear(width, 3)
        self.apply(self.fill)

    def forward(self, x):
        for layer in self.tower:
            x = nn.functional.elu(layer(x))
        return self.head(x)


torch.manual_seed(0)
inputs = torch.randn(320, 16)
loader = DataLoader(TensorDataset(inputs, inputs[:, :3].argmax(1)), batch_size=32, shuffle=True)
model = Tower(16, 7)
optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
for epoch in range(5):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
