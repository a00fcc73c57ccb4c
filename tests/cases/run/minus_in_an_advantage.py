"""Policy gradients by cross entropy: factors below 0, of samples or of a whole episode, are advantages."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for episode in range(60):
    x = torch.randn(32, 8)
    logits = model(x)
    actions = torch.distributions.Categorical(logits=logits.detach()).sample()
    rewards = (actions == x[:, :4].argmax(1)).float() - 2.0 - episode / 20
    loss = (nn.functional.cross_entropy(logits, actions, reduction="none") * rewards).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    loss = nn.functional.cross_entropy(model(x), actions) * float(rewards.mean() + 2.0 + episode / 20 - 0.3)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
