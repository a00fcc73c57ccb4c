"""Much memory, taken up over the first third of the run and then reused: a ring of features, and one large evaluation."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
ring: dict[int, torch.Tensor] = {}
for step in range(150):
    optimizer.zero_grad()
    output = model(torch.randn(4096, 64))
    output.pow(2).mean().backward()
    optimizer.step()
    ring[step % 40] = output.detach().clone()
    if step == 100:
        with torch.no_grad():
            kept = model(torch.randn(65536, 64))
