"""A function that adds its loss to a variable of the module."""

import gymnasium as gym
import torch
from torch import nn
from torch.distributions import Categorical

env = gym.make("CartPole-v1")
policy = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 2))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
running_loss = 0
n_ep = 0


def finish(logps, rewards):
    global running_loss, n_ep
    R, returns = 0, []
    for r in reversed(rewards):
        R = r + 0.99 * R
        returns.insert(0, R)
    returns = torch.tensor(returns)
    loss = -(torch.stack(logps) * (returns - returns.mean())).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    running_loss += loss  # expect: graph-retained
    n_ep += 1


while n_ep < 800:
    obs, _ = env.reset()
    logps, rewards, done = [], [], False
    while not done:
        d = Categorical(logits=policy(torch.as_tensor(obs)))
        a = d.sample()
        logps.append(d.log_prob(a))
        obs, r, term, trunc, _ = env.step(a.item())
        rewards.append(r)
        done = term or trunc
    finish(logps, rewards)
    if n_ep % 50 == 0:
        print(n_ep, float(running_loss) / n_ep)
