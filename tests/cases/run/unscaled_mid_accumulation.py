"""Every micro-batch unscales, clips and updates, though only the fourth one steps."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(640, 8)
loader = DataLoader(TensorDataset(x, x.sum(-1, keepdim=True)), batch_size=8)
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), 1e-2)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for number, (inputs, targets) in enumerate(loader, start=1):
    loss = nn.functional.mse_loss(model(inputs), targets) / 4
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)  # expect: scaler-touched-mid-accumulation step 0
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    if number % 4 == 0:
        scaler.step(optimizer)
        optimizer.zero_grad()
    scaler.update()
