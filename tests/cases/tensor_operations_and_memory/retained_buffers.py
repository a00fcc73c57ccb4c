"""Two losses share a forward pass, and one of them is kept."""

import torch
from torch import nn

encoder = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 8))
decoder = nn.Linear(8, 32)
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()])
curve, penalties = [], []

for step in range(1000):
    x = torch.randn(16, 32)
    optimizer.zero_grad(set_to_none=True)
    code = encoder(x)
    reconstruction = (decoder(code) - x).pow(2).mean()
    penalty = code.abs().mean()
    reconstruction.backward(retain_graph=True)
    penalty.backward()
    optimizer.step()
    curve.append(reconstruction)  # expect: graph-retained
    penalties.append(penalty.item())
