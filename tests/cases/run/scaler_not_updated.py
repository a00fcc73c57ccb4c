"""The update is left out where a batch is called easy: the next step fails, and the loop goes on without it."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), 1e-2)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
failed = 0
for _ in range(30):
    optimizer.zero_grad()
    loss = (model(torch.randn(16, 8)) - 1).pow(2).mean()
    scaler.scale(loss).backward()
    try:
        scaler.step(optimizer)  # expect: scaler-not-updated step 1
    except RuntimeError:
        failed += 1
        continue
    if loss.item() > 100:
        scaler.update()
print(failed, "batches failed")
