from typing import NamedTuple

import numpy as np
import torch

from a2c.env import VectorCartPole
from a2c.policy import ActorCritic


class Rollout(NamedTuple):
    """All of shape (steps, environments), observations with one more dimension."""

    obs: torch.Tensor
    actions: torch.Tensor
    rewards: torch.Tensor
    terminated: torch.Tensor
    truncated: torch.Tensor
    next_obs: torch.Tensor


@torch.no_grad()
def collect(policy: ActorCritic, env: VectorCartPole, steps: int, device: torch.device) -> Rollout:
    shape = (steps, env.n_envs)
    obs = np.empty((*shape, env.obs_dim), dtype=np.float32)
    next_obs = np.empty_like(obs)
    actions = np.empty(shape, dtype=np.int64)
    rewards = np.empty(shape, dtype=np.float32)
    terminated = np.empty(shape, dtype=bool)
    truncated = np.empty(shape, dtype=bool)
    current = env.observe()
    for t in range(steps):
        obs[t] = current
        actions[t] = policy.act(torch.from_numpy(current).to(device)).cpu().numpy()
        current, rewards[t], terminated[t], truncated[t], next_obs[t] = env.step(actions[t])
    arrays = (obs, actions, rewards, terminated, truncated, next_obs)
    return Rollout(*(torch.from_numpy(array).to(device) for array in arrays))


@torch.no_grad()
def evaluate(policy: ActorCritic, n_episodes: int, horizon: int, seed: int, device: torch.device) -> float:
    """Mean return of the greedy policy; the starts are the same in every call."""
    policy.eval()
    env = VectorCartPole(n_episodes, horizon, seed)
    obs = env.reset()
    alive = np.ones(n_episodes, dtype=bool)
    returns = np.zeros(n_episodes)
    for _ in range(horizon):
        actions = policy.act(torch.from_numpy(obs).to(device), greedy=True)
        obs, reward, terminated, truncated, _ = env.step(actions.cpu().numpy())
        returns += reward * alive
        alive &= ~(terminated | truncated)
        if not alive.any():
            break
    policy.train()
    return float(returns.mean())
