"""States that are appended to a list."""

import torch
from torch import nn

nets = [nn.Linear(2, 2) for _ in range(3)]
states = []
for n in nets:
    states.append(n.state_dict)  # expect: state-dict-not-called
torch.save(states, "ens.pt")
