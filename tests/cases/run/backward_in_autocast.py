"""The whole step stands under autocast, the backward with it."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), 1e-2)


def differentiate(loss: torch.Tensor) -> None:
    optimizer.zero_grad()
    loss.backward()  # expect: backward-in-autocast step 0


for _ in range(20):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        x = torch.randn(16, 8)
        differentiate(nn.functional.mse_loss(model(x).float(), x[:, :1]))
    optimizer.step()
