"""Two losses of one graph are handed to a helper."""

import torch
import torch.nn.functional as F
from torch import nn


class SharedActorCritic(nn.Module):
    def __init__(self, obs, acts):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(obs, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh())
        self.actor = nn.Linear(64, acts)
        self.critic = nn.Linear(64, 1)

    def forward(self, obs):
        h = self.encoder(obs)
        return torch.distributions.Categorical(logits=self.actor(h)), self.critic(h).squeeze(-1)


class Learner:
    def __init__(self, net, lr=3e-4):
        self.net = net
        self.opt = torch.optim.Adam(net.parameters(), lr=lr)

    def _backward(self, policy_loss, value_loss):
        policy_loss.backward(retain_graph=True)
        policy_norm = self._encoder_norm()
        value_loss.backward()
        return policy_norm, self._encoder_norm()

    def _encoder_norm(self):
        return torch.stack([p.grad.norm() for p in self.net.encoder.parameters()]).norm()

    def update(self, obs, action, target):
        dist, value = self.net(obs)
        advantage = (target - value).detach()
        policy_loss = -(dist.log_prob(action) * advantage).mean() - 0.01 * dist.entropy().mean()
        value_loss = F.smooth_l1_loss(value, target)
        self.opt.zero_grad()
        norms = self._backward(policy_loss, value_loss)
        nn.utils.clip_grad_norm_(self.net.parameters(), 0.5)
        self.opt.step()
        return norms


if __name__ == "__main__":
    torch.manual_seed(0)
    learner = Learner(SharedActorCritic(8, 4))
    learner.net.train()
    for step in range(1000):
        obs = torch.randn(256, 8)
        with torch.no_grad():
            dist, _ = learner.net(obs)
            action = dist.sample()
        reward = (action == obs[:, :4].argmax(1)).float()
        before, after = learner.update(obs, action, reward)
        if step % 200 == 0:
            print(step, reward.mean().item(), before.item(), after.item())
