"""An activation overflows float16 under autocast, and would not in float32."""

import torch
from torch import nn


class Square(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x * x) * (x * x)  # expect: non-finite-origin step 6 module 1


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 8), Square(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), 1e-6)
for step in range(12):
    optimizer.zero_grad()
    x = torch.randn(16, 8) * (60 if step == 6 else 1)
    with torch.autocast("cpu", dtype=torch.float16):
        loss = model(x).float().pow(2).mean().clamp(max=1e3)
    loss.backward()  # expect: scaler-missing step 0
    optimizer.step()
