"""The learning rate is set by building the optimizer anew in every step: Adam begins from nothing each time."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))


def learn(inputs: torch.Tensor, rate: float) -> None:
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)  # expect: built-in-loop
    optimizer.zero_grad()
    nn.functional.mse_loss(model(inputs), inputs[:, :1]).backward()
    optimizer.step()


for step in range(40):
    learn(torch.randn(16, 16), 1e-3 / (1 + step))
