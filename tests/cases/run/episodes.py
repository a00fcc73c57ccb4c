"""A policy gradient and an unrolled cell: a hundred calls, and their graphs, belong to one optimizer step."""

import torch
from torch import nn

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(policy.parameters())
for _ in range(12):
    chosen = [policy(torch.randn(1, 4)).log_softmax(-1)[:, 0] for _ in range(100)]
    loss = -(torch.cat(chosen) * torch.rand(100)).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

cell, head = nn.LSTMCell(8, 16), nn.Linear(16, 1)
optimizer = torch.optim.Adam([*cell.parameters(), *head.parameters()])
for _ in range(12):
    hidden, state = torch.zeros(16, 16), torch.zeros(16, 16)
    losses = []
    for _ in range(40):
        hidden, state = cell(torch.randn(16, 8), (hidden, state))
        losses.append(head(hidden).pow(2).mean())
    optimizer.zero_grad()
    torch.stack(losses).mean().backward()
    optimizer.step()
