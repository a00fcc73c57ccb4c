"""A metric is computed anew from all predictions so far, in every step: the step grows with the run."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
scores: list[float] = []


def ranked(values: list[float]) -> float:
    above = 0
    for value in values:
        above += sum(1 for other in values[-300:] if other > value)  # expect: progressive-slowdown
    return above / max(len(values), 1)


for _ in range(120):
    inputs = torch.randn(16, 32)
    optimizer.zero_grad()
    outputs = model(inputs)
    nn.functional.mse_loss(outputs, inputs[:, :1]).backward()
    optimizer.step()
    scores.extend(outputs.detach().flatten()[:16].tolist())
    ranked(scores)
