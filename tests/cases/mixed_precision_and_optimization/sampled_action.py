"""The logarithm of the probability of an action that was drawn."""

import torch
from torch import nn
from torch.distributions import Categorical

policy = nn.Linear(4, 2)
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
for episode in range(100):
    states = torch.randn(16, 4)
    prob = torch.softmax(policy(states), dim=1)
    action = Categorical(prob).sample()  # never one whose probability is 0
    taken = prob.gather(1, action.unsqueeze(1))
    loss = (-torch.log(taken) * torch.randn(16, 1)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
