"""Nothing grows at first; then a function that nobody runs meanwhile keeps what it is given, in a dict by step."""

import torch
from torch import nn


def recorder():
    seen = {}

    def record(step, output):
        seen[step] = {"output": output.detach().clone()}  # expect: memory-growth

    return record


torch.manual_seed(0)
record = recorder()
model = nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
for step in range(900):
    optimizer.zero_grad()
    output = model(torch.randn(2048, 64))
    output.pow(2).mean().backward()
    optimizer.step()
    if step >= 400:
        record(step, output)
