"""Losses with a minus that are meant: a generator against a critic by turns, a reward, and an ascent that is asked for."""

import torch
from torch import nn

torch.manual_seed(0)
maker, judge = nn.Linear(4, 8), nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizers = [torch.optim.Adam(each.parameters(), lr=0.01) for each in (maker, judge)]
bce = nn.functional.binary_cross_entropy_with_logits
for _ in range(60):
    made, real = maker(torch.randn(32, 4)), torch.randn(32, 8)
    optimizers[1].zero_grad()
    (bce(judge(real), torch.ones(32, 1)) + bce(judge(made.detach()), torch.zeros(32, 1))).backward()
    optimizers[1].step()
    optimizers[0].zero_grad()
    (-bce(judge(made), torch.zeros(32, 1))).backward()
    optimizers[0].step()
