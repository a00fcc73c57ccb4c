"""An actor's log-probabilities are kept over an episode in which the critic steps at every move: they are learned from."""

import torch
from torch import nn


def perceptron(outputs: int) -> nn.Module:
    return nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, outputs))


torch.manual_seed(0)
actor, critic = perceptron(2), perceptron(1)
of_actor, of_critic = (torch.optim.Adam(each.parameters(), 1e-2) for each in (actor, critic))
for _ in range(8):
    state, kept, gains = torch.randn(4), [], []
    for _ in range(25):
        choice = torch.distributions.Categorical(logits=actor(state))
        action = choice.sample()
        kept.append(choice.log_prob(action))
        following = torch.randn(4)
        with torch.no_grad():
            target = float(action == (state[0] > 0).long()) + 0.5 * critic(following)
        error = target - critic(state)
        gains.append(error.detach())
        of_critic.zero_grad()
        error.pow(2).mean().backward()
        of_critic.step()
        state = following
    loss = -(torch.stack(kept) * torch.cat(gains)).sum()
    of_actor.zero_grad()
    loss.backward()
    of_actor.step()
    print(float(loss))
