"""A training step on samples of a replay buffer."""

import torch
from torch import nn


class Agent:
    def __init__(self, obs_dim, n_actions, gamma=0.99):
        self.q = nn.Sequential(nn.Linear(obs_dim, 128), nn.ReLU(), nn.Linear(128, n_actions))
        self.target = nn.Sequential(nn.Linear(obs_dim, 128), nn.ReLU(), nn.Linear(128, n_actions))
        self.opt = torch.optim.Adam(self.q.parameters(), lr=1e-3)
        self.gamma = gamma

    def learn(self, batch):
        s, a, r, s2, done = batch
        q = self.q(s).gather(1, a.unsqueeze(1)).squeeze(1)
        with torch.no_grad():
            best = self.target(s2).max(1).values
        goal = r + self.gamma * best * (1 - done)
        loss = nn.functional.smooth_l1_loss(q, goal)
        self.opt.zero_grad()
        loss.backward(retain_graph=True)  # expect: retain-graph-needless
        self.opt.step()
        return loss.item()

    def run(self, buffer, steps):
        for t in range(steps):
            self.learn(buffer.sample(64))
            if t % 100 == 0:
                self.target.load_state_dict(self.q.state_dict())
