"""A tracker object keeps every output, and with it the activations of its forward pass."""

import torch
from torch import nn


class Tracker:
    def __init__(self) -> None:
        self.outputs: list[torch.Tensor] = []

    def add(self, output: torch.Tensor) -> None:
        self.outputs.append(output)  # expect: graph-retained


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8))
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
tracker = Tracker()
for _ in range(60):
    optimizer.zero_grad()
    output = model(torch.randn(32, 16))
    output.pow(2).mean().backward()
    optimizer.step()
    tracker.add(output)
