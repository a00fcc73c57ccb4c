"""Saves that leave things out on purpose: a head alone, an average of the weights, a state before the first step."""

import copy
import io

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
nn.init.zeros_(net[2].bias)
average = copy.deepcopy(net)
optimizer = torch.optim.SGD(net.parameters(), 0.05)
torch.save({"model": net.state_dict(), "optimizer": optimizer.state_dict()}, io.BytesIO())
for step in range(60):
    x = torch.randn(32, 8)
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(x), (x.sum(1) > 0).long()).backward()
    optimizer.step()
    with torch.no_grad():
        for kept, parameter in zip(average.parameters(), net.parameters(), strict=True):
            kept.lerp_(parameter, 0.1)
    if step % 20 == 0:
        torch.save({name: each for name, each in net.state_dict().items() if name.startswith("2")}, io.BytesIO())
        torch.save({"ema": average.state_dict(), "step": step}, io.BytesIO())
        torch.save({name: each.half() for name, each in net.state_dict().items()}, io.BytesIO())
