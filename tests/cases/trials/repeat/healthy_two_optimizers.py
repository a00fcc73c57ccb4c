# repeats

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
maker, judge = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2)), nn.Linear(2, 1)
of_maker, of_judge = torch.optim.Adam(maker.parameters()), torch.optim.Adam(judge.parameters())
for _ in range(8):
    made = maker(torch.randn(16, 4))
    loss = F.softplus(judge(made.detach())).mean() + F.softplus(-judge(torch.randn(16, 2))).mean()
    of_judge.zero_grad()
    loss.backward()
    of_judge.step()
    loss = F.softplus(-judge(made)).mean()
    of_maker.zero_grad()
    loss.backward()
    of_maker.step()
