"""A helper that unrolls a policy and gives its last state back."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Rollout:
    logp: torch.Tensor
    value: torch.Tensor
    reward: torch.Tensor
    entropy: torch.Tensor


class RecurrentPolicy(nn.Module):
    def __init__(self, obs=6, acts=3, core=64):
        super().__init__()
        self.core = nn.GRUCell(obs, core)
        self.pi, self.v = nn.Linear(core, acts), nn.Linear(core, 1)

    def forward(self, obs, hx):
        hx = self.core(obs, hx)
        return torch.distributions.Categorical(logits=self.pi(hx)), self.v(hx).squeeze(-1), hx


class CopyEnv:
    """Rewards the action that was shown two steps ago."""

    def __init__(self, n):
        self.n, self.past = n, [torch.zeros(n, dtype=torch.long)] * 3

    def observe(self):
        self.past = self.past[1:] + [torch.randint(0, 3, (self.n,))]
        return torch.cat([F.one_hot(self.past[-1], 3), F.one_hot(self.past[1], 3)], 1).float()

    def reward(self, action):
        return (action == self.past[0]).float()


def collect(policy, env, hx, horizon):
    rows = []
    for _ in range(horizon):
        dist, value, hx = policy(env.observe(), hx)
        action = dist.sample()
        rows.append((dist.log_prob(action), value, env.reward(action), dist.entropy()))
    return Rollout(*(torch.stack(c) for c in zip(*rows))), hx


def discounted(reward, last, gamma=0.9):
    out = []
    for r in reward.flip(0):
        last = r + gamma * last
        out.append(last)
    return torch.stack(out[::-1])


def main():
    torch.manual_seed(0)
    env, policy = CopyEnv(32), RecurrentPolicy()
    opt = torch.optim.Adam(policy.parameters(), lr=7e-4)
    hx, updates = torch.zeros(32, 64), 0
    while updates < 400:
        roll, hx = collect(policy, env, hx, horizon=16)  # expect: hidden-state-not-detached
        ret = discounted(roll.reward, torch.zeros(32))
        adv = ret - roll.value
        loss = -(adv.detach() * roll.logp).mean() + 0.5 * adv.pow(2).mean() - 0.01 * roll.entropy.mean()
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
        opt.step()
        updates += 1
        if updates % 100 == 0:
            print(updates, roll.reward.mean().item())


if __name__ == "__main__":
    main()
