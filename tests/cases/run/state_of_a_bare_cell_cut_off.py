"""A cell that no module holds is called for each moment; its last state starts the chunk after, without its graph."""

import torch
from torch import nn

torch.manual_seed(0)
cell, read = nn.GRUCell(3, 16), nn.Linear(16, 1)
optimizer = torch.optim.Adam([*cell.parameters(), *read.parameters()], 1e-2)
stream = torch.randn(8, 160, 3).cumsum(1).sin()
h = torch.zeros(8, 16)
for chunk in stream.split(4, 1):
    outputs = []
    for moment in chunk.unbind(1):
        h = cell(moment, h)
        outputs.append(h)
    loss = (read(torch.stack(outputs, 1)).squeeze(-1) - chunk.sum(-1)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    h = h.detach()
