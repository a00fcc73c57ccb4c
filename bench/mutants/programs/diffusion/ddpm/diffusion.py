"""The forward (noising) process, its training objective and ancestral sampling."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def linear_betas(timesteps: int, start: float = 1e-3, end: float = 0.12) -> Tensor:
    return torch.linspace(start, end, timesteps, dtype=torch.float64)


def cosine_betas(timesteps: int, offset: float = 8e-3) -> Tensor:
    grid = torch.linspace(0.0, 1.0, timesteps + 1, dtype=torch.float64)
    alpha_bar = torch.cos((grid + offset) / (1.0 + offset) * math.pi / 2) ** 2
    betas = 1.0 - alpha_bar[1:] / alpha_bar[:-1]
    return betas.clamp(max=0.999)


SCHEDULES = {"linear": linear_betas, "cosine": cosine_betas}


def expand_to(values: Tensor, like: Tensor) -> Tensor:
    """Shapes one value per sample so that it broadcasts over the remaining dimensions."""
    return values.reshape(-1, *([1] * (like.dim() - 1)))


class GaussianDiffusion(nn.Module):
    """Holds the constants of the process as buffers; the network is passed in by the caller."""

    def __init__(self, timesteps: int = 100, schedule: str = "cosine") -> None:
        super().__init__()
        if schedule not in SCHEDULES:
            raise ValueError(f"unknown noise schedule {schedule!r}, expected one of {sorted(SCHEDULES)}")
        self.timesteps = timesteps

        betas = SCHEDULES[schedule](timesteps)
        alphas = 1.0 - betas
        alpha_bar = torch.cumprod(alphas, dim=0)
        alpha_bar_prev = F.pad(alpha_bar[:-1], (1, 0), value=1.0)
        posterior_variance = betas * (1.0 - alpha_bar_prev) / (1.0 - alpha_bar)

        constants = {
            "sqrt_alpha_bar": alpha_bar.sqrt(),
            "sqrt_one_minus_alpha_bar": (1.0 - alpha_bar).sqrt(),
            "posterior_std": posterior_variance.sqrt(),
            "posterior_x0_weight": betas * alpha_bar_prev.sqrt() / (1.0 - alpha_bar),
            "posterior_xt_weight": (1.0 - alpha_bar_prev) * alphas.sqrt() / (1.0 - alpha_bar),
        }
        for name, value in constants.items():
            self.register_buffer(name, value.float())

    def add_noise(self, x0: Tensor, t: Tensor, noise: Tensor) -> Tensor:
        signal = expand_to(self.sqrt_alpha_bar[t], x0)
        sigma = expand_to(self.sqrt_one_minus_alpha_bar[t], x0)
        return signal * x0 + sigma * noise

    def random_timesteps(self, count: int) -> Tensor:
        return torch.randint(0, self.timesteps, (count,), device=self.sqrt_alpha_bar.device)

    def loss(self, network: nn.Module, x0: Tensor, t: Tensor, noise: Tensor) -> Tensor:
        """Mean squared error of the predicted noise."""
        predicted = network(self.add_noise(x0, t, noise), t)
        return F.mse_loss(predicted, noise)

    def predict_x0(self, xt: Tensor, t: Tensor, noise: Tensor) -> Tensor:
        signal = expand_to(self.sqrt_alpha_bar[t], xt)
        sigma = expand_to(self.sqrt_one_minus_alpha_bar[t], xt)
        return ((xt - sigma * noise) / signal.clamp(min=1e-3)).clamp(-1.0, 1.0)

    @torch.no_grad()
    def sample(self, network: nn.Module, shape: tuple[int, ...], generator: torch.Generator | None = None) -> Tensor:
        device = self.sqrt_alpha_bar.device
        x = torch.randn(shape, device=device, generator=generator)
        for step in reversed(range(self.timesteps)):
            t = torch.full((shape[0],), step, device=device, dtype=torch.long)
            x0 = self.predict_x0(x, t, network(x, t))
            mean = self.posterior_x0_weight[step] * x0 + self.posterior_xt_weight[step] * x
            if step == 0:
                return mean
            noise = torch.randn(shape, device=device, generator=generator)
            x = mean + self.posterior_std[step] * noise
        return x
