"""Rounding that parameters are trained beside: straight through, a phase that is wrapped, a figure that is shown."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
scale = nn.Parameter(torch.ones(()))
optimizer = torch.optim.SGD([*model.parameters(), scale], lr=0.01)
for _ in range(30):
    x = torch.randn(32, 8)
    output = model(x) / scale
    code = (output + (output.round() - output).detach()) * scale
    phase = output - output.floor()
    target = x.sum(1, keepdim=True)
    loss = nn.functional.mse_loss(code, target) + 0.01 * phase.sin().square().mean()
    shown = nn.functional.mse_loss(output.round(), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(float(shown))
