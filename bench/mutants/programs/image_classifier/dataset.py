"""Synthetic RGB images of five figures in random colours, as a map-style dataset with transforms."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

CLASSES = ("disc", "frame", "cross", "stripes", "checker")


def _masks(labels: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    count = len(labels)
    ys, xs = np.meshgrid(np.arange(size), np.arange(size), indexing="ij")
    cx = rng.uniform(0.4 * size, 0.6 * size, (count, 1, 1))
    cy = rng.uniform(0.4 * size, 0.6 * size, (count, 1, 1))
    radius = rng.uniform(0.25 * size, 0.38 * size, (count, 1, 1))
    dx, dy = np.abs(xs - cx), np.abs(ys - cy)
    square = np.maximum(dx, dy)

    figures = np.stack(
        [
            np.hypot(dx, dy) < radius,
            (square < radius) & (square > 0.55 * radius),
            (np.minimum(dx, dy) < 0.3 * radius) & (square < radius),
            (square < radius) & ((ys // 2) % 2 == 0),
            (square < radius) & ((xs // 2 + ys // 2) % 2 == 0),
        ]
    )
    return figures[labels, np.arange(count)]


class FigureDataset(Dataset):
    """Figures on a noisy background; all images are made up front and kept as 8-bit integers."""

    def __init__(
        self,
        count: int,
        size: int = 16,
        seed: int = 0,
        transform: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        rng = np.random.default_rng(seed)
        labels = rng.integers(0, len(CLASSES), count)
        masks = _masks(labels, size, rng)[:, None].astype(np.float64)
        ink = rng.uniform(0.4, 0.9, (count, 3, 1, 1))
        paper = rng.uniform(0.0, 0.4, (count, 3, 1, 1))
        noise = rng.normal(0.0, 0.25, (count, 3, size, size))
        pixels = np.clip(paper + (ink - paper) * masks + noise, 0.0, 1.0)
        self.images = torch.from_numpy((pixels * 255).astype(np.uint8))
        self.labels = labels.tolist()
        self.transform = transform

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        image = self.images[index].float() / 255
        if self.transform is not None:
            image = self.transform(image)
        return image, self.labels[index]


class Normalize:
    def __init__(self, mean: float = 0.3, std: float = 0.25) -> None:
        self.mean = mean
        self.std = std

    def __call__(self, image: Tensor) -> Tensor:
        return (image - self.mean) / self.std


class RandomFlip:
    """Mirrors an image from left to right with probability one half."""

    def __call__(self, image: Tensor) -> Tensor:
        return image.flip(-1) if torch.rand(()) < 0.5 else image


class RandomShift:
    """Moves an image by up to ``pixels`` in both directions, wrapping around."""

    def __init__(self, pixels: int = 1) -> None:
        self.pixels = pixels

    def __call__(self, image: Tensor) -> Tensor:
        down, right = torch.randint(-self.pixels, self.pixels + 1, (2,)).tolist()
        return image.roll((down, right), dims=(-2, -1))


class Compose:
    def __init__(self, *transforms: Callable[[Tensor], Tensor]) -> None:
        self.transforms = transforms

    def __call__(self, image: Tensor) -> Tensor:
        for transform in self.transforms:
            image = transform(image)
        return image
