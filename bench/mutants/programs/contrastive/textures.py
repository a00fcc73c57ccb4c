"""Synthetic colour images whose class is the orientation and the frequency of a grating.

Phase, colours, illumination and noise carry no information about the class.
"""

import math

import numpy as np
import torch
from torch import Tensor

ORIENTATIONS = (0.0, math.pi / 4, math.pi / 2, 3 * math.pi / 4)
WAVELENGTHS = (3.0, 5.5)
NUM_CLASSES = len(ORIENTATIONS) * len(WAVELENGTHS)


def make_textures(count: int, size: int, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
    labels = np.arange(count) % NUM_CLASSES
    rng.shuffle(labels)
    angle = np.take(ORIENTATIONS, labels % len(ORIENTATIONS)) + rng.normal(0.0, 0.08, count)
    wavelength = np.take(WAVELENGTHS, labels // len(ORIENTATIONS)) * rng.uniform(0.92, 1.08, count)
    phase = rng.uniform(0.0, 2 * math.pi, count)

    grid = np.linspace(-size / 2, size / 2, size)
    ys, xs = np.meshgrid(grid, grid, indexing="ij")
    along = np.cos(angle)[:, None, None] * xs + np.sin(angle)[:, None, None] * ys
    wave = np.sin(2 * math.pi * along / wavelength[:, None, None] + phase[:, None, None])

    foreground = rng.uniform(-0.6, 0.6, (count, 3, 1, 1))
    background = rng.uniform(-0.5, 0.5, (count, 3, 1, 1))
    slope = rng.normal(0.0, 0.5, (count, 2, 1, 1))
    illumination = (slope[:, :1] * xs + slope[:, 1:] * ys) / size
    images = background + foreground * wave[:, None] + illumination + rng.normal(0.0, 0.12, (count, 3, size, size))
    return torch.from_numpy(images.astype(np.float32)), torch.from_numpy(labels)
