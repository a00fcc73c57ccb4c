"""The value head is judged by its rounded output, so that its gradient is zero in every step."""

import torch
from torch import nn

torch.manual_seed(0)
trunk, value = nn.Sequential(nn.Linear(8, 16), nn.ReLU()), nn.Linear(16, 1)
policy = nn.Linear(16, 4)
parts = nn.ModuleList([trunk, value, policy])
optimizer = torch.optim.SGD(parts.parameters(), lr=0.05)
for _ in range(30):
    x = torch.randn(32, 8)
    features = trunk(x)
    error = nn.functional.mse_loss(value(features).round(), x.sum(1, keepdim=True))
    loss = error + nn.functional.cross_entropy(policy(features), x[:, :4].argmax(1))  # expect: no-gradient-by-design
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
