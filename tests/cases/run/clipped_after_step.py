"""Clipping stands behind the step."""

import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_

torch.manual_seed(0)
x = torch.randn(320, 8)
y = 40 * x.sum(1, keepdim=True)
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), 1e-2)
for start in range(0, 320, 16):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x[start : start + 16]), y[start : start + 16]).backward()
    optimizer.step()
    clip_grad_norm_(model.parameters(), 1.0)  # expect: clip-after-step
