"""A mean over what a mask leaves, of which one batch leaves nothing; the logarithm beside it is kept from zero."""

import torch
from torch import nn

torch.manual_seed(0)


def over(values, mask):
    return (values * mask).sum() / mask.sum()  # expect: non-finite-origin step 30


model = nn.GRU(4, 8, batch_first=True)
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
for step in range(40):
    x = torch.randn(8, 10, 4)
    mask = torch.zeros(8, 10) if step == 30 else (torch.rand(8, 10) < 0.5).float()
    out, _ = model(x)
    loss = over((out.mean(-1) - x.sum(-1)).abs(), mask) - 0.01 * out.abs().clamp(min=1e-6).log().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
