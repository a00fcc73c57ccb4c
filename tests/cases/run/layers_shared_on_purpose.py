"""Shared heads, tied weights, a recurrence that says so, activations in many places, copies."""

import copy

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        act, block = nn.ReLU(), nn.Linear(16, 16)
        self.stem = nn.Sequential(nn.Linear(8, 16), act, nn.Linear(16, 16), act)
        self.copies = nn.ModuleList([copy.deepcopy(block) for _ in range(3)])
        self.head = nn.Linear(16, 16)
        self.heads = nn.ModuleList([self.head for _ in range(3)])
        self.recurrent = nn.ModuleList([nn.Linear(16, 16)] * 3)  # the same weights in all three turns
        self.acts = nn.ModuleList([nn.Tanh()] * 3)
        self.out = nn.Linear(16, 16)
        self.out.weight = self.head.weight

    def forward(self, x):
        x = self.stem(x)
        total = 0.0
        for one, head, turn, act in zip(self.copies, self.heads, self.recurrent, self.acts):
            x = act(turn(one(x)))
            total = total + head(x)
        return self.out(total).sum(1, keepdim=True)


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
x = torch.randn(64, 8)
for _ in range(20):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), x.sum(1, keepdim=True)).backward()
    optimizer.step()
