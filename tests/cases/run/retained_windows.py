"""Graphs of earlier steps that are meant to live: a window that moves on, and a pool that is emptied at once."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
window = []
pool = []
for step in range(200):
    optimizer.zero_grad()
    output = model(torch.randn(32, 16))
    loss = output.pow(2).mean()
    loss.backward()
    optimizer.step()
    window.append(loss)
    if len(window) > 12:
        window.pop(0)
    pool.append(output if step % 50 == 49 else output.detach())
print(sum(float(each) for each in window))
