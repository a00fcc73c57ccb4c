import torch
from torch import nn
from torch.distributions import Categorical


def layer(n_in: int, n_out: int, gain: float) -> nn.Linear:
    linear = nn.Linear(n_in, n_out)
    nn.init.orthogonal_(linear.weight, gain)
    nn.init.zeros_(linear.bias)
    return linear


class ActorCritic(nn.Module):
    """Two small networks that share nothing."""

    def __init__(self, obs_dim: int, n_actions: int, hidden: int = 64) -> None:
        super().__init__()
        gain = nn.init.calculate_gain("tanh")
        self.actor = nn.Sequential(layer(obs_dim, hidden, gain), nn.Tanh(), layer(hidden, n_actions, 0.01))
        self.critic = nn.Sequential(layer(obs_dim, hidden, gain), nn.Tanh(), layer(hidden, 1, 1.0))

    def forward(self, obs: torch.Tensor) -> tuple[Categorical, torch.Tensor]:
        return Categorical(logits=self.actor(obs), validate_args=False), self.critic(obs).squeeze(-1)

    def act(self, obs: torch.Tensor, greedy: bool = False) -> torch.Tensor:
        logits = self.actor(obs)
        return logits.argmax(dim=-1) if greedy else Categorical(logits=logits, validate_args=False).sample()
