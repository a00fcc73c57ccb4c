"""Logarithms of probabilities that a helper or a module of the same file gives."""

import torch
import torch.nn.functional as F
from torch import nn


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(4, 2)

    def forward(self, state):
        return F.softmax(self.out(state), dim=-1)


def reinforce(states, actions, returns):
    policy = Policy()
    optimizer = torch.optim.Adam(policy.parameters())
    for state, action, gain in zip(states, actions, returns):
        chances = policy(state)
        loss = -(torch.log(chances[action]) * gain)  # expect: unstable-composition
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2), nn.Softmax(dim=-1))
        self.plain = nn.Sequential(nn.Linear(4, 32), nn.Softplus())

    def chances(self, state):
        return torch.softmax(self.plain(state), -1)

    def bounded(self, state):
        return torch.softmax(self.plain(state), -1).clamp(min=1e-6)

    def loss(self, state, action):
        return -self.chances(state).log().gather(1, action).mean()  # expect: unstable-composition

    def bounded_loss(self, state, action):
        return -self.bounded(state).log().gather(1, action).mean()

    def chosen(self, state, action):
        found = self.net(state)
        return torch.log(found.gather(1, action))  # expect: unstable-composition

    def rate(self, state):
        return torch.log(self.plain(state))


class Mixed(nn.Module):
    def forward(self, x):
        return F.softmax(x, -1) + 1e-8


def shifted(x, y):
    head = Mixed()
    found = head(x)
    return -(torch.log(found) * y).mean()
