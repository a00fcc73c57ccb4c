"""update() stands outside of the branch that steps: it fails in every other iteration, and the loop catches that."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), 1e-2)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for number in range(1, 61):
    x = torch.randn(16, 8)
    scaler.scale((model(x) - x[:, :1]).pow(2).mean() / 2).backward()
    if number % 2 == 0:
        scaler.step(optimizer)
        optimizer.zero_grad()
    try:
        scaler.update()  # expect: scaler-touched-mid-accumulation step 0
    except AssertionError as error:
        print(error)
