"""A critic that is frozen for the generator's turn only: its own loss has a way to its parameters."""

import torch
import torch.nn.functional as F
from torch import nn

generator = nn.Linear(16, 32)
critic = nn.Linear(32, 1)
for_generator = torch.optim.Adam(generator.parameters(), 2e-4)
for_critic = torch.optim.Adam(critic.parameters(), 2e-4)

for step in range(100):
    real, noise = torch.randn(8, 32), torch.randn(8, 16)
    with torch.no_grad():
        fake = generator(noise)
    for_critic.zero_grad()
    (F.relu(1 - critic(real)).mean() + F.relu(1 + critic((fake > 0).float())).mean()).backward()
    for_critic.step()

    critic.requires_grad_(False)
    for_generator.zero_grad()
    (-critic(generator(noise)).mean()).backward()
    for_generator.step()
    critic.requires_grad_(True)
