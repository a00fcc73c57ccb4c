"""The scale is found in a few steps; later, masked rows of one head give gradients that are no numbers."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 16), nn.Tanh())
        self.length, self.out = nn.Linear(16, 4), nn.Linear(16, 1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = self.body(x)
        return self.length(hidden), self.out(hidden)


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**22)
for step in range(60):
    bad = step > 20 and step % 7 == 6
    optimizer.zero_grad()
    x = torch.randn(16, 8)
    with torch.autocast("cpu", dtype=torch.float16):
        length, out = model(x)
    mask = torch.zeros(16, 1) if bad else torch.ones(16, 1)
    loss = (length.float() * mask).norm() + (out.float() - x[:, :1]).pow(2).mean()
    if bad:
        loss = loss + (length.float() - length.float().detach()).pow(2).sum().sqrt()
    scaler.scale(loss).backward()
    scaler.step(optimizer)  # expect: scale-collapsing step 27 module length.bias
    scaler.update()
