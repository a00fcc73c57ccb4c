"""A generator with batch norm makes fakes without gradients in training mode, and a policy with dropout plays."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 8))
critic = nn.Sequential(nn.Linear(8, 16), nn.LeakyReLU(), nn.Dropout(0.3), nn.Linear(16, 1))
of_generator = torch.optim.Adam(generator.parameters(), 1e-3)
of_critic = torch.optim.Adam(critic.parameters(), 1e-3)
real = DataLoader(TensorDataset(torch.randn(256, 8)), 16, shuffle=True)
fixed = torch.randn(16, 4)
for _ in range(3):
    for turn, (x,) in enumerate(real):
        with torch.no_grad():
            made = generator(torch.randn(16, 4))
        of_critic.zero_grad()
        (critic(made).mean() - critic(x).mean()).backward()
        of_critic.step()
        if turn % 2 == 0:
            of_generator.zero_grad()
            (-critic(generator(torch.randn(16, 4))).mean()).backward()
            of_generator.step()
    with torch.no_grad():
        print(generator(fixed).std().item())

policy = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Dropout(0.1), nn.Linear(16, 2))
optimizer = torch.optim.Adam(policy.parameters(), 1e-3)
for _ in range(12):
    state, states, chosen = torch.randn(8, 4), [], []
    with torch.no_grad():
        for _ in range(20):
            states.append(state)
            chosen.append(torch.distributions.Categorical(logits=policy(state)).sample())
            state = state + 0.1 * torch.randn(8, 4)
    optimizer.zero_grad()
    scores = policy(torch.cat(states)).log_softmax(1).gather(1, torch.cat(chosen)[:, None])
    (-scores.mean()).backward()
    optimizer.step()
