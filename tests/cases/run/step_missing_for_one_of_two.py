"""Two optimizers are built in one line, and only the second one steps."""

import torch
from torch import nn

torch.manual_seed(0)
parts = {"encoder": nn.Sequential(nn.Linear(16, 8), nn.Tanh()), "decoder": nn.Linear(8, 16)}
optimizers = {name: torch.optim.Adam(part.parameters(), 1e-3) for name, part in parts.items()}
for _ in range(20):
    x = torch.randn(32, 4).repeat(1, 4)
    for optimizer in optimizers.values():
        optimizer.zero_grad()
    nn.functional.mse_loss(parts["decoder"](parts["encoder"](x)), x).backward()  # expect: step-missing
    optimizers["decoder"].step()
