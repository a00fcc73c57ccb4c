"""A helper scales the loss, and the loop differentiates the loss that was not scaled."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), 1e-1)
scaler = torch.amp.GradScaler("cpu")


def losses(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    loss = (model(x) - x.sum(-1, keepdim=True)).pow(2).mean()
    return loss, scaler.scale(loss)


for _ in range(30):
    optimizer.zero_grad(set_to_none=False)
    loss, scaled = losses(torch.randn(16, 8))
    loss.backward()  # expect: scaler-bypassed step 0
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
