"""A builder casts the network to float16, and SGD trains it so."""

import torch
from torch import nn


def build() -> nn.Sequential:
    net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
    return net.to(torch.float16)  # expect: half-model-trained step 0 module 0.weight


torch.manual_seed(0)
model = build()
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
for _ in range(30):
    x = torch.randn(16, 8)
    optimizer.zero_grad()
    loss = (model(x.half()).float() - x[:, :1]).pow(2).mean()
    loss.backward()
    optimizer.step()
