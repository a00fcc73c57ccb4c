"""Tensors that map() makes, and a target that is wrapped inside of the criterion's call."""

import random

import torch
from torch import nn

value = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2))
opt = torch.optim.Adam(value.parameters())
criterion = nn.HuberLoss()


def learn(memory):
    state, action, reward, after, over = map(torch.tensor, zip(*random.sample(memory, 32)))
    chosen = value(state).gather(1, action[:, None]).squeeze(1)
    with torch.no_grad():
        goal = reward + 0.9 * value(after).amax(1) * ~over
    loss = criterion(chosen, torch.tensor(goal))  # expect: tensor-of-tensor
    opt.zero_grad()
    loss.backward()
    opt.step()


def learn_from_numbers(memory):
    states, _, rewards, _, _ = zip(*random.sample(memory, 32))
    loss = criterion(value(torch.tensor(states)).amax(1), torch.tensor(rewards))
    opt.zero_grad()
    loss.backward()
    opt.step()


class Pairs(nn.Module):
    def __init__(self, margin):
        super().__init__()
        self.margin = margin

    def forward(self, z, same):
        near = torch.cdist(z, z)
        total = near.new_zeros(())
        for i in range(near.size(0)):  # expect: python-loop-over-tensor
            for j in range(near.size(1)):
                if same[i] == same[j]:
                    total = total + near[i, j] ** 2
                else:
                    total = total + torch.relu(self.margin - near[i, j]) ** 2
        return total


class Levels(nn.Module):
    def __init__(self, rate):
        super().__init__()
        self.rate = rate

    def forward(self, x):
        level = x.new_zeros(())
        out = torch.zeros_like(x)
        for i in range(x.size(0)):
            level = level * self.rate + x[i]
            out[i] = level
        return out
