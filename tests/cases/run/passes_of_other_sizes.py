"""A frozen network in evaluation mode, a last batch that is smaller, a saliency map now and then: all as it should be."""

import torch
from torch import nn
from torch.nn import functional


def saliency(model: nn.Module, points: torch.Tensor) -> float:
    model.eval()
    points = points.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(model(points).sum(), points)
    model.train()
    return float(gradient.abs().mean())


torch.manual_seed(0)
points = torch.randn(250, 4)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 4))
seen = nn.Sequential(nn.Linear(4, 8), nn.Tanh()).eval().requires_grad_(False)
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
for _ in range(8):
    for part in points.split(32):
        given = model(part)
        loss = functional.mse_loss(seen(given), seen(part)) + functional.mse_loss(given, part)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(float(functional.mse_loss(model(points), points)))
    model.train()
    print(saliency(model, points[:50]))
