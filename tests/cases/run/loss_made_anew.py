"""The loss is wrapped in a new tensor, so that backward reaches no parameter and no step changes anything."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for _ in range(30):
    x = torch.randn(32, 8)
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss = torch.tensor(loss.item(), requires_grad=True)
    optimizer.zero_grad()
    loss.backward()  # expect: loss-detached
    optimizer.step()
