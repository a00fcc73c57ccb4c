import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class TimeEmbedding(nn.Module):
    """Sinusoids of the time step, followed by a two-layer perceptron."""

    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__()
        half = dim // 2
        frequencies = torch.exp(-math.log(1000.0) * torch.arange(half) / half)
        self.register_buffer("frequencies", frequencies, persistent=False)
        self.mlp = nn.Sequential(nn.Linear(dim, hidden), nn.SiLU(), nn.Linear(hidden, hidden))

    def forward(self, t: Tensor) -> Tensor:
        angles = t.float().unsqueeze(1) * self.frequencies
        return self.mlp(torch.cat([angles.sin(), angles.cos()], dim=1))


class ModulatedBlock(nn.Module):
    """A residual perceptron block; the time embedding scales and shifts its normalised input."""

    def __init__(self, width: int, time_dim: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width, elementwise_affine=False)
        self.modulation = nn.Linear(time_dim, 2 * width)
        self.expand = nn.Linear(width, 2 * width)
        self.contract = nn.Linear(2 * width, width)

    def forward(self, x: Tensor, emb: Tensor) -> Tensor:
        scale, shift = self.modulation(F.silu(emb)).chunk(2, dim=-1)
        h = self.norm(x) * (1.0 + scale) + shift
        return x + self.contract(F.silu(self.expand(h)))


class Denoiser(nn.Module):
    """Predicts the noise in a small image from all of its pixels at once."""

    def __init__(self, pixels: int, width: int = 128, depth: int = 3, time_dim: int = 64) -> None:
        super().__init__()
        self.time = TimeEmbedding(32, time_dim)
        self.stem = nn.Linear(pixels, width)
        self.blocks = nn.ModuleList(ModulatedBlock(width, time_dim) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, pixels)

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        emb = self.time(t)
        h = self.stem(x.flatten(1))
        for block in self.blocks:
            h = block(h, emb)
        return self.head(self.norm(h)).view_as(x)
