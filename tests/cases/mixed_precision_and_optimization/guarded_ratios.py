"""Logarithms of one more than a ratio: the epsilon in the divisor is a guard, and says nothing of the ratio."""

import torch


def encode(distance: torch.Tensor, width: torch.Tensor, epsilon: float = 1e-5) -> torch.Tensor:
    return torch.log(distance / (width + epsilon) + 1.0)


def grow(rate: torch.Tensor, periods: int) -> torch.Tensor:
    return torch.log(1.0 + rate / periods)  # expect: unstable-composition
