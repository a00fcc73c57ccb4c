"""Optimizers over adversarial inputs, for one item each, for one batch each, and one without a state; a loader for
each short epoch; a module that waits elsewhere.
"""

import copy

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randn(8, 8))
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), 1e-3)


def attacked(inputs: torch.Tensor) -> torch.Tensor:
    delta = nn.Parameter(torch.zeros_like(inputs))
    attack = torch.optim.Adam([delta], 1e-2, maximize=True)
    model(inputs + delta).pow(2).mean().backward()
    attack.step()
    return (inputs + delta).detach()


for _ in range(12):
    for (inputs,) in DataLoader(data, batch_size=4):
        outer = attacked(inputs)
        optimizer.zero_grad()
        model(outer).pow(2).mean().backward()
        optimizer.step()

for _ in range(24):  # one model for each item
    fitted = copy.deepcopy(model)
    own = torch.optim.Adam(fitted.parameters(), 1e-3)
    own.zero_grad()
    fitted(torch.randn(4, 8)).pow(2).mean().backward()
    own.step()

for _ in range(24):  # without momentum there is nothing to forget
    plain = torch.optim.SGD(model.parameters(), 1e-3)
    plain.zero_grad()
    model(torch.randn(4, 8)).pow(2).mean().backward()
    plain.step()

start = copy.deepcopy(model.state_dict())
for _ in range(24):  # each item adapts the model from the same start
    model.load_state_dict(start)
    adapted = torch.optim.Adam(model.parameters(), 1e-3)
    adapted.zero_grad()
    model(torch.randn(4, 8)).pow(2).mean().backward()
    adapted.step()
