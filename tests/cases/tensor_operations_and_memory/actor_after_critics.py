"""Two losses of graphs of their own in one update."""

import torch


class SACUpdate:
    def __init__(self, actor, q1, q2, lr):
        self.actor, self.q1, self.q2 = actor, q1, q2
        self.actor_opt = torch.optim.Adam(actor.parameters(), lr=lr)
        self.q_opt = torch.optim.Adam([*q1.parameters(), *q2.parameters()], lr=lr)

    def update(self, obs, act, target):
        q_loss = (self.q1(obs, act) - target).pow(2).mean() + (self.q2(obs, act) - target).pow(2).mean()
        self.q_opt.zero_grad()
        q_loss.backward(retain_graph=True)  # expect: retain-graph-needless
        self.q_opt.step()
        new_act, logp = self.actor(obs)
        a_loss = (0.2 * logp - torch.min(self.q1(obs, new_act), self.q2(obs, new_act))).mean()
        self.actor_opt.zero_grad()
        a_loss.backward()
        self.actor_opt.step()
