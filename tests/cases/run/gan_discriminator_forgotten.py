"""Both optimizers of a GAN are given the generator's parameters: the discriminator never learns."""

import torch
from torch import nn

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
discriminator = nn.Sequential(nn.Linear(4, 8), nn.LeakyReLU(), nn.Linear(8, 1))
of_generator = torch.optim.Adam(generator.parameters(), 1e-3)
of_discriminator = torch.optim.Adam(generator.parameters(), 1e-3)  # expect: parameters-not-in-optimizer
judge = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(16, 1), torch.zeros(16, 1)
for _ in range(40):
    fake = generator(torch.randn(16, 8))
    of_discriminator.zero_grad()
    judge(discriminator(torch.randn(16, 4)), ones).backward()
    judge(discriminator(fake.detach()), zeros).backward()
    of_discriminator.step()
    of_generator.zero_grad()
    judge(discriminator(fake), ones).backward()
    of_generator.step()
