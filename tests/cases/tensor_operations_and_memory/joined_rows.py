"""Rows of an episode are listed to be joined."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rows = []
        self.cell = nn.LSTM(4, 8)
        self.head = nn.Linear(8, 1)
        self.optimizer = torch.optim.Adam(self.parameters(), lr=1e-3)

    def pi(self, x, state):
        x, state = self.cell(x, state)
        return self.head(x), state

    def keep(self, row):
        self.rows.append(row)

    def batch(self):
        xs, befores = [], []
        for x, before in self.rows:
            xs.append(x)
            befores.append(before)
        self.rows = []  # emptied before every step
        return torch.cat(xs), befores[0]

    def learn(self):
        x, (h, c) = self.batch()
        out, _ = self.pi(x, (h.detach(), c.detach()))
        self.optimizer.zero_grad()
        out.square().mean().backward()
        self.optimizer.step()


def main(env):
    net = Net()
    for episode in range(100):
        state = (torch.zeros(1, 1, 8), torch.zeros(1, 1, 8))
        done = False
        while not done:
            for t in range(20):
                before = state
                x, done = env.step()
                out, state = net.pi(x, before)  # this is where the graph grows
                net.keep((x, before))
                if done:
                    break
            net.learn()


if __name__ == "__main__":
    import gym
    main(gym.make("CartPole-v1"))
