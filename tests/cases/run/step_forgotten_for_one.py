"""Two optimizers, and the second is never stepped."""

import torch
from torch import nn

torch.manual_seed(0)
body, head = nn.Linear(8, 16), nn.Linear(16, 1)
of_body = torch.optim.SGD(body.parameters(), 1e-3)
of_head = torch.optim.SGD(head.parameters(), 1e-3)
for _ in range(30):
    of_body.zero_grad()
    of_head.zero_grad()
    head(torch.relu(body(torch.randn(16, 8)))).pow(2).mean().backward()  # expect: step-missing
    of_body.step()
