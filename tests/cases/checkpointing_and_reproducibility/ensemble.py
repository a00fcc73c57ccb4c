"""An ensemble that is saved as a list."""

import torch
from torch import nn

ensemble = [nn.Linear(3, 1) for _ in range(5)]
opts = [torch.optim.Adam(m.parameters()) for m in ensemble]
for m, o in zip(ensemble, opts):
    for _ in range(10):
        o.zero_grad()
        m(torch.randn(4, 3)).sum().backward()
        o.step()
torch.save(ensemble, "ensemble.pt")  # expect: whole-object-saved
