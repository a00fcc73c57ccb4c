"""Synthetic images: a bright patch in one of four corners, in one of two colours, among distractors."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

NUM_CLASSES = 8
_COLOURS = np.array([[1.0, 0.35, 0.2], [0.2, 0.45, 1.0]])


def make_scenes(count: int, size: int, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
    """Images (count, 3, size, size) in float32 and labels: 2 * corner + colour."""
    corner = rng.integers(0, 4, count)
    colour = rng.integers(0, 2, count)
    half = size // 2
    ys, xs = np.meshgrid(np.arange(size), np.arange(size), indexing="ij")

    def blob(cy: np.ndarray, cx: np.ndarray, radius: np.ndarray) -> np.ndarray:
        squared = (ys - cy[:, None, None]) ** 2 + (xs - cx[:, None, None]) ** 2
        return np.exp(-squared / (2.0 * radius[:, None, None] ** 2))

    margin = size / 8
    cy = (corner // 2) * half + rng.uniform(margin, half - margin, count)
    cx = (corner % 2) * half + rng.uniform(margin, half - margin, count)
    figure = blob(cy, cx, rng.uniform(1.6, 2.2, count))[:, None] * _COLOURS[colour][:, :, None, None]

    images = rng.normal(0.0, 0.2, (count, 3, size, size)) + figure
    for _ in range(2):
        grey = blob(rng.uniform(0, size, count), rng.uniform(0, size, count), rng.uniform(1.0, 2.0, count))
        images += 0.5 * grey[:, None]
    images = (images - 0.25) / 0.45
    return torch.from_numpy(images.astype(np.float32)), torch.from_numpy(2 * corner + colour)


class BatchLoader:
    """Batches of tensors that are wholly in memory, in a new order for every epoch."""

    def __init__(self, images: Tensor, labels: Tensor, batch_size: int, generator: torch.Generator | None) -> None:
        self.images = images
        self.labels = labels
        self.batch_size = batch_size
        self.generator = generator

    def __len__(self) -> int:
        return len(self.images) // self.batch_size

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        count = len(self.images)
        order = torch.arange(count) if self.generator is None else torch.randperm(count, generator=self.generator)
        for rows in order[: len(self) * self.batch_size].split(self.batch_size):
            yield self.images[rows], self.labels[rows]
