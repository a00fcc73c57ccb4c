"""Each step of an episode has a graph of its own, and goes back through it once."""

import random

import torch
from torch import nn


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = []
        self.layer = nn.Linear(4, 2)
        self.optimizer = torch.optim.Adam(self.parameters(), lr=1e-3)

    def forward(self, x):
        return torch.log_softmax(self.layer(x), dim=0)

    def learn(self):
        total = 0.0
        self.optimizer.zero_grad()
        for reward, logp in self.steps[::-1]:
            total = reward + 0.9 * total
            loss = -logp * total
            loss.backward()  # each logp has a graph of its own
        self.optimizer.step()
        self.steps = []


agent = Agent()
for episode in range(100):
    running = True
    while running:
        logp = agent(torch.randn(4))
        agent.steps.append((1.0, logp[torch.distributions.Categorical(logits=logp).sample()]))
        running = random.random() < 0.9
    agent.learn()
