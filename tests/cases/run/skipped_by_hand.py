"""Healthy: bad steps that the script itself skips, gradients zeroed past autograd, an empty group, a state of its own."""

import torch
from torch import nn


class Remembering(nn.Module):
    """Draws from a generator of its own and keeps a list: a repeated forward would change what it does next."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(8, 4)
        self.draws = torch.Generator().manual_seed(1)
        self.seen: list[torch.Tensor] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen.append(x.mean())
        return self.inner(x + 0.1 * torch.randn(x.shape, generator=self.draws))


torch.manual_seed(0)
model = Remembering()
optimizer = torch.optim.SGD([{"params": []}, {"params": model.parameters()}], 1e-2)
for step in range(20):  # one bad batch, left out after its backward
    x = torch.randn(16, 8)
    if step == 5:
        x[0] = float("inf")
    optimizer.zero_grad()
    loss = model(x).pow(2).mean()
    loss.backward()
    if torch.isfinite(loss):
        optimizer.step()

model = nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), 1e-2)
scale = 2.0**20
for step in range(30):  # a loss scale by hand, which overflows while it searches
    loss = model(torch.randn(16, 8)).pow(2).mean() * scale
    loss = loss.half().float() if step < 3 else loss
    optimizer.zero_grad()
    loss.backward()
    if not torch.isfinite(loss):
        scale /= 8
        continue
    for parameter in model.parameters():
        parameter.grad.div_(scale)
    optimizer.step()

for step in range(20):  # neither way of zeroing is seen by autograd
    for parameter in model.parameters():
        if step % 2:
            parameter.grad.data.zero_()
        else:
            parameter.grad.numpy()[...] = 0
    model(torch.randn(16, 8)).pow(2).mean().backward()
    optimizer.step()
