"""A cell that no module holds is called for each moment; the chunk after starts from its last state, graph and all."""
# exits: 1

import torch
from torch import nn

torch.manual_seed(0)
cell, read = nn.GRUCell(3, 16), nn.Linear(16, 1)
optimizer = torch.optim.Adam([*cell.parameters(), *read.parameters()], 1e-2)
stream = torch.randn(8, 120, 3).cumsum(1).sin()
h = torch.zeros(8, 16)
for chunk in stream.split(4, 1):
    outputs = []
    for moment in chunk.unbind(1):
        h = cell(moment, h)  # expect: hidden-state-not-detached
        outputs.append(h)
    loss = (read(torch.stack(outputs, 1)).squeeze(-1) - chunk.sum(-1)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
