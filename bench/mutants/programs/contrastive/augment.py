"""Random augmentations that work on a whole batch, with other parameters for every image."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class RandomAffine(nn.Module):
    """A small rotation, a zoom and a shift, resampled bilinearly."""

    def __init__(self, degrees: float = 8.0, zoom: float = 0.1, shift: float = 0.35) -> None:
        super().__init__()
        self.radians = math.radians(degrees)
        self.zoom = zoom
        self.shift = shift

    def forward(self, images: Tensor) -> Tensor:
        count, device = len(images), images.device
        angle = (torch.rand(count, device=device) * 2 - 1) * self.radians
        scale = 1.0 + (torch.rand(count, device=device) * 2 - 1) * self.zoom
        offset = (torch.rand(count, 2, device=device) * 2 - 1) * self.shift
        cos, sin = angle.cos() * scale, angle.sin() * scale
        top = torch.stack([cos, -sin, offset[:, 0]], dim=1)
        bottom = torch.stack([sin, cos, offset[:, 1]], dim=1)
        theta = torch.stack([top, bottom], dim=1)
        grid = F.affine_grid(theta, list(images.shape), align_corners=False)
        return F.grid_sample(images, grid, padding_mode="reflection", align_corners=False)


class ColourJitter(nn.Module):
    """Another gain (of either sign) and another offset for every channel."""

    def __init__(self, gain: float = 0.4, offset: float = 0.5) -> None:
        super().__init__()
        self.gain = gain
        self.offset = offset

    def forward(self, images: Tensor) -> Tensor:
        shape = (len(images), images.shape[1], 1, 1)
        gain = 1.0 + (torch.rand(shape, device=images.device) * 2 - 1) * self.gain
        sign = torch.where(torch.rand(shape, device=images.device) < 0.5, -1.0, 1.0)
        offset = (torch.rand(shape, device=images.device) * 2 - 1) * self.offset
        return images * gain * sign + offset


class GaussianNoise(nn.Module):
    def __init__(self, std: float = 0.08) -> None:
        super().__init__()
        self.std = std

    def forward(self, images: Tensor) -> Tensor:
        return images + self.std * torch.randn_like(images)


def default_augmentation() -> nn.Module:
    return nn.Sequential(RandomAffine(), ColourJitter(), GaussianNoise())
