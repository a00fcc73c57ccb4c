"""Labels that begin at 1; the run ends with an error.  # exits: 1"""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(64, 8)
labels = 1 + x[:, :3].argmax(1)
labels[:16].clamp_(max=2)
model, criterion = nn.Linear(8, 3), nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
for start in range(0, 64, 8):
    optimizer.zero_grad()
    loss = criterion(model(x[start : start + 8]), labels[start : start + 8])  # expect: index-out-of-range step 2
    loss.backward()
    optimizer.step()
