"""A minimax game by epochs, and a search for an input that a trained network gets wrong: minus signs that are meant."""

import torch
from torch import nn

torch.manual_seed(0)
maker, judge = nn.Linear(4, 8), nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
bce = nn.functional.binary_cross_entropy_with_logits
makers, judges = (torch.optim.Adam(each.parameters(), lr=0.01) for each in (maker, judge))
for epoch in range(6):
    for _ in range(20):
        made, real = maker(torch.randn(32, 4)), torch.randn(32, 8)
        if epoch % 2:
            makers.zero_grad()
            (-bce(judge(made), torch.zeros(32, 1))).backward()
            makers.step()
        else:
            judges.zero_grad()
            (bce(judge(real), torch.ones(32, 1)) + bce(judge(made.detach()), torch.zeros(32, 1))).backward()
            judges.step()
change = torch.zeros(8, requires_grad=True)
search = torch.optim.Adam([change], lr=0.05)
for _ in range(60):
    search.zero_grad()
    (-bce(judge(torch.randn(32, 8) + change), torch.ones(32, 1))).backward()
    search.step()
