"""Twelve residual blocks with small branches, and a sigmoid at the end: gradients reach the first layer."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)
        nn.init.normal_(self.down.weight, std=0.02)

    def forward(self, x):
        return x + self.down(torch.tanh(self.up(self.norm(x))))


inputs = torch.randn(480, 8)
labels = (inputs.sum(1) > 0).float()
loader = DataLoader(TensorDataset(inputs, labels), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(8, 24), *(Block(24) for _ in range(12)), nn.Linear(24, 1))
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
for epoch in range(5):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(model(x).squeeze(1), y).backward()
        optimizer.step()
