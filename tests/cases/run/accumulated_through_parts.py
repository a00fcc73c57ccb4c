"""A model in two parts, each with an optimizer, is trained in chunks whose mean losses nothing divides."""

import torch
from torch import nn

torch.manual_seed(0)
body, head = nn.Sequential(nn.Linear(6, 32), nn.Tanh()), nn.Linear(32, 1)
slow = torch.optim.SGD(body.parameters(), lr=1e-3, momentum=0.9)
fast = torch.optim.SGD(head.parameters(), lr=1e-2)


def objective(inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return (head(body(inputs)) - targets).pow(2).mean()


for _ in range(20):
    slow.zero_grad()
    fast.zero_grad()
    x = torch.randn(64, 6)
    for part in x.chunk(4):
        objective(part, part.sum(1, keepdim=True)).backward()  # expect: loss-not-averaged-over-accumulation
    slow.step()
    fast.step()
