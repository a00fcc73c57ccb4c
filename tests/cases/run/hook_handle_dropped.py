"""A logger puts a new hook on a layer before every batch."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), 1e-2)
means = {}


def watch(part, name):
    def note(_module, _args, output):
        means[name] = output.detach().mean().item()

    part.register_forward_hook(note)  # expect: hook-handle-dropped module 0


for _ in range(30):
    watch(model[0], "hidden")
    optimizer.zero_grad()
    model(torch.randn(16, 8)).pow(2).mean().backward()
    optimizer.step()
