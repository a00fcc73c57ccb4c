"""Losses are kept, by step, once the warm-up is over."""

import torch
from torch import nn


class Log:
    def __init__(self):
        self.series = {"loss": {}}

    def put(self, step, loss):
        self.series["loss"][step] = loss  # expect: graph-retained


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
log = Log()
for step in range(360):
    optimizer.zero_grad()
    loss = model(torch.randn(32, 16)).pow(2).mean()
    loss.backward()
    optimizer.step()
    if step >= 150:
        log.put(step, loss)
