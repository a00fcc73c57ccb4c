# step: 3
# phase: data
# cause: time-or-entropy

import os

import torch
from torch import nn
from torch.nn import functional as F


def drawn(shape):
    """Numbers that no seed reaches."""
    generator = torch.Generator().manual_seed(int.from_bytes(os.urandom(4), "big"))
    return torch.randn(shape, generator=generator)


torch.manual_seed(0)
maker = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
judge = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1))
of_maker = torch.optim.Adam(maker.parameters(), lr=1e-3)
of_judge = torch.optim.Adam(judge.parameters(), lr=1e-3)
for step in range(6):
    noise = drawn((16, 4)) if step == 2 else torch.randn(16, 4)
    made, real = maker(noise), torch.randn(16, 2) + 1
    loss = F.softplus(judge(made.detach())).mean() + F.softplus(-judge(real)).mean()
    of_judge.zero_grad()
    loss.backward()
    of_judge.step()
    loss = F.softplus(-judge(made)).mean()
    of_maker.zero_grad()
    loss.backward()
    of_maker.step()
