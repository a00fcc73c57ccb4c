"""An agent that seeds when it is made: as it should be."""

import random

import numpy as np
import torch
from torch import nn


class DQN:
    def __init__(self, obs, act, seed=0):
        torch.manual_seed(seed)
        np.random.seed(seed)
        random.seed(seed)
        self.q = nn.Linear(obs, act)
        self.opt = torch.optim.Adam(self.q.parameters())
        self.buffer = []
        self.n = act

    def act(self, o, eps):
        if random.random() < eps:
            return random.randrange(self.n)
        return self.q(o).argmax().item()

    def learn(self):
        batch = random.sample(self.buffer, 32)
        o, a, r = (torch.stack(t) for t in zip(*batch))
        loss = nn.functional.mse_loss(self.q(o).gather(1, a), r)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()


def main(env):
    agent = DQN(4, 2)
    o = env.reset()
    for t in range(1000):
        a = agent.act(o, 0.1)
        o, r = env.step(a)
        agent.learn()
