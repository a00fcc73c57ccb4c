"""zero_grad is missing, and clipping changes the gradients between backward and step."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
for _ in range(20):
    model(torch.randn(16, 8)).pow(2).mean().backward()  # expect: gradients-not-zeroed
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
