"""Parameters of no module, and rightly: of another optimizer, moved by hand, a dummy weight of a penalty, frozen."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
scale, shift, dummy = nn.Parameter(torch.ones(1)), nn.Parameter(torch.zeros(1)), nn.Parameter(torch.ones(1))
constant = nn.Parameter(torch.ones(1), requires_grad=False)
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
other = torch.optim.SGD([scale], 1e-2)
for _ in range(20):
    optimizer.zero_grad()
    other.zero_grad()
    risk, penalty = torch.zeros(()), torch.zeros(())
    for shifted in (0.0, 0.5):
        x = torch.randn(32, 6)
        error = (model(x) * scale * dummy * constant + shift - x.sum(1, keepdim=True) - shifted).pow(2)
        (slope,) = torch.autograd.grad(error.mean(), dummy, create_graph=True)
        risk, penalty = risk + error.mean(), penalty + slope.pow(2).sum()
    (risk + 0.1 * penalty).backward()
    optimizer.step()
    other.step()
    with torch.no_grad():
        shift -= 1e-2 * shift.grad
        shift.grad = None
    for parameter in model.parameters():
        assert parameter.requires_grad
