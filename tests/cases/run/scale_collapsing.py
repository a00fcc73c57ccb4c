"""Every eighth batch pairs a sample with itself: the derivative of their distance is no number, whatever the scale is."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=65536.0)
for step in range(60):
    optimizer.zero_grad()
    x = torch.randn(16, 8)
    y = x if step % 8 == 7 else torch.randn(16, 8)
    distance = (model(x) - model(y)).pow(2).sum(-1).sqrt()
    scaler.scale(distance.mean()).backward()
    scaler.step(optimizer)  # expect: scale-collapsing step 7 module 2.bias
    scaler.update()
