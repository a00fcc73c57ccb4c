"""The gradient norm is logged by a helper that unscales, and then the loop unscales once more to clip."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), 1e-2)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)


def norm_of_gradients() -> torch.Tensor:
    scaler.unscale_(optimizer)
    return torch.stack([parameter.grad.norm() for parameter in model.parameters()]).norm()


for _ in range(30):
    optimizer.zero_grad()
    scaler.scale((model(torch.randn(16, 8)) - 1).pow(2).mean()).backward()
    norm_of_gradients()
    try:
        scaler.unscale_(optimizer)  # expect: scaler-not-updated step 0
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    except RuntimeError as error:
        print(error)
    scaler.step(optimizer)
    scaler.update()
