"""An agent acts for long before it learns; its forecasts have a channel (N, 1, T), the targets have none (N, T)."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Conv1d(1, 8, 5, padding=2), nn.Tanh(), nn.Conv1d(8, 1, 5, padding=2))
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
memory = []
for moment in range(300):
    series = torch.randn(20).cumsum(0)
    with torch.no_grad():
        model(series[None, None])
    memory.append(series)
    if moment > 220 and moment % 2:
        target = torch.stack(memory[-16:])
        forecast = model(target.unsqueeze(1) + 0.3)
        loss = torch.log(torch.cosh(forecast - target)).mean()  # expect: loss-broadcast
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
