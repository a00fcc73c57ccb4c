"""Memory that has an end which the run does not reach: a deque with one, and a replay buffer allocated at once."""

from collections import deque

import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(64, 8)
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
window: deque[torch.Tensor] = deque(maxlen=4000)
buffer = np.zeros((400, 128, 1024), dtype=np.float32)
for step in range(120):
    buffer[step] = 1.0
    window.append(torch.ones(128, 1024))
    optimizer.zero_grad()
    model(torch.randn(32, 64)).pow(2).mean().backward()
    optimizer.step()
