"""A Frechet distance between image sets, in a small space of fixed features."""

import torch
import torch.nn.functional as F


def features(images: torch.Tensor) -> torch.Tensor:
    """Means of 4x4 tiles, strengths of edges by tile of 8x8, and the share of bright pixels."""
    tiles = F.avg_pool2d(images, 4).flatten(1)
    dx = F.avg_pool2d((images[..., :, 1:] - images[..., :, :-1]).abs(), (8, 7)).flatten(1)
    dy = F.avg_pool2d((images[..., 1:, :] - images[..., :-1, :]).abs(), (7, 8)).flatten(1)
    bright = (images > 0).float().mean(dim=(1, 2, 3)).unsqueeze(1)
    return torch.cat([tiles, 2 * dx, 2 * dy, 2 * bright], dim=1).double()


def frechet_distance(a: torch.Tensor, b: torch.Tensor) -> float:
    """|mu_a - mu_b|^2 + tr(A + B - 2 (A^1/2 B A^1/2)^1/2)"""
    mu_a, mu_b = a.mean(0), b.mean(0)
    cov_a, cov_b = torch.cov(a.T), torch.cov(b.T)
    values, vectors = torch.linalg.eigh(cov_a)
    root_a = vectors @ torch.diag(values.clamp_min(0).sqrt()) @ vectors.T
    cross = torch.linalg.eigvalsh(root_a @ cov_b @ root_a).clamp_min(0).sqrt().sum()
    distance = (mu_a - mu_b).square().sum() + cov_a.trace() + cov_b.trace() - 2 * cross
    return distance.item()
