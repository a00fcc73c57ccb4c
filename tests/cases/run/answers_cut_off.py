"""The answers are cut off from the network and made leaves again, so that the loss has a graph that leads nowhere."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for _ in range(30):
    x = torch.randn(32, 8)
    answers = (model(x) > 0).float().requires_grad_()
    loss = nn.functional.mse_loss(answers, (x.sum(1, keepdim=True) > 0).float())
    optimizer.zero_grad()
    loss.backward()  # expect: loss-detached
    optimizer.step()
