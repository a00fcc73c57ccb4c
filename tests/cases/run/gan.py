"""Two optimizers that take turns; the generator's backward also fills gradients of the discriminator."""

import torch
from torch import nn

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
discriminator = nn.Sequential(nn.Linear(4, 16), nn.LeakyReLU(), nn.Linear(16, 1))
of_generator = torch.optim.Adam(generator.parameters(), 1e-3)
of_discriminator = torch.optim.Adam(discriminator.parameters(), 1e-3)
judge = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(16, 1), torch.zeros(16, 1)
for _ in range(30):
    fake = generator(torch.randn(16, 8))
    of_discriminator.zero_grad(set_to_none=False)
    (judge(discriminator(torch.randn(16, 4)), ones) + judge(discriminator(fake.detach()), zeros)).backward()
    of_discriminator.step()
    of_generator.zero_grad(set_to_none=False)
    judge(discriminator(fake), ones).backward()
    of_generator.step()
