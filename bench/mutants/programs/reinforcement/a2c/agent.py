from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

from a2c.policy import ActorCritic
from a2c.rollout import Rollout


@dataclass
class AgentConfig:
    lr: float = 5e-3
    gamma: float = 0.98
    gae_lambda: float = 0.95
    entropy_coef: float = 0.01
    value_coef: float = 0.5
    max_grad_norm: float = 0.5
    # returns are of the order of 1 / (1 - gamma); the critic predicts them in this unit
    return_scale: float = 50.0


class A2CAgent:
    def __init__(self, policy: ActorCritic, cfg: AgentConfig, total_updates: int) -> None:
        self.policy = policy
        self.cfg = cfg
        self.optimizer = torch.optim.Adam(policy.parameters(), lr=cfg.lr, eps=1e-5)
        self.scheduler = torch.optim.lr_scheduler.LinearLR(
            self.optimizer, start_factor=1.0, end_factor=0.05, total_iters=total_updates
        )

    @torch.no_grad()
    def advantages(self, rollout: Rollout, values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Generalised advantage estimates, and the returns that go with them.

        A cut-off episode is bootstrapped from the last state seen, a fallen pole is worth nothing.
        """
        cfg = self.cfg
        next_values = self.policy(rollout.next_obs)[1].masked_fill(rollout.terminated, 0.0)
        deltas = rollout.rewards / cfg.return_scale + cfg.gamma * next_values - values
        carry = (~(rollout.terminated | rollout.truncated)).float() * cfg.gamma * cfg.gae_lambda
        out = torch.empty_like(deltas)
        running = torch.zeros_like(deltas[0])
        for t in reversed(range(len(deltas))):
            running = deltas[t] + carry[t] * running
            out[t] = running
        return out, out + values

    def update(self, rollout: Rollout) -> dict[str, float]:
        dist, values = self.policy(rollout.obs)
        advantages, returns = self.advantages(rollout, values.detach())
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-6)

        policy_loss = -(dist.log_prob(rollout.actions) * advantages).mean()
        value_loss = F.mse_loss(values, returns)
        entropy = dist.entropy().mean()
        loss = policy_loss + self.cfg.value_coef * value_loss - self.cfg.entropy_coef * entropy

        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.policy.parameters(), self.cfg.max_grad_norm)
        self.optimizer.step()
        self.scheduler.step()
        return {"loss": loss.item(), "value_loss": value_loss.item(), "entropy": entropy.item()}

    def state_dict(self) -> dict:
        return {
            "policy": self.policy.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.scheduler.state_dict(),
        }

    def load_state_dict(self, state: dict) -> None:
        self.policy.load_state_dict(state["policy"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scheduler.load_state_dict(state["scheduler"])
