"""A deep tower of tanh layers that start far too small; the head learns, the first layers do not."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Tower(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.stem = nn.Linear(8, width)  # expect: gradients-vanishing module stem
        self.blocks = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.head = nn.Linear(width, 1)
        for block in self.blocks:
            nn.init.normal_(block.weight, std=0.02)

    def forward(self, x):
        x = torch.tanh(self.stem(x))
        for block in self.blocks:
            x = torch.tanh(block(x))
        return self.head(x)


inputs = torch.randn(480, 8)
targets = inputs.sum(1, keepdim=True).sin()
loader = DataLoader(TensorDataset(inputs, targets), batch_size=32, shuffle=True)
model = Tower(24, 8)
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
for epoch in range(5):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
