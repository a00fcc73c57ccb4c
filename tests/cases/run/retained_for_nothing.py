"""A GAN whose critic retains the graph of a fake that is detached: nothing goes through it again."""

import torch
from torch import nn

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 8))
critic = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
makes, judges = (torch.optim.Adam(each.parameters(), 1e-3) for each in (generator, critic))
for _ in range(30):
    fake = generator(torch.randn(16, 4))
    judges.zero_grad()
    (critic(fake.detach()).mean() - critic(torch.randn(16, 8)).mean()).backward(retain_graph=True)  # expect: retain-graph-needless
    judges.step()
    makes.zero_grad()
    (-critic(fake).mean()).backward()
    makes.step()
