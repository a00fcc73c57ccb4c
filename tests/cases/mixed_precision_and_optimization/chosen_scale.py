"""A loss scale that somebody has chosen and that never changes, with Adam: nothing has to divide by it."""

import torch
import torch.nn.functional as F

model = torch.nn.Linear(3, 3)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, eps=1e-15)
scaler = torch.amp.GradScaler("cuda", 2**10)
for step in range(100):
    loss = F.smooth_l1_loss(model(torch.randn(4, 3)), torch.zeros(4, 3))
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    optimizer.step()
