"""Ellipses on a textured ground, with the mask of what they cover."""

import numpy as np
import torch
from torch.utils.data import Dataset


def make_scene(rng: np.random.Generator, size: int) -> tuple[np.ndarray, np.ndarray]:
    yy, xx = np.mgrid[0:size, 0:size].astype(np.float32)
    angle = rng.uniform(0, np.pi)
    wave = np.sin((np.cos(angle) * xx + np.sin(angle) * yy) * rng.uniform(0.4, 1.2) + rng.uniform(0, 6.28))
    image = 0.4 + 0.15 * wave
    mask = np.zeros((size, size), dtype=bool)
    for _ in range(rng.integers(1, 4)):
        cy, cx = rng.uniform(4, size - 4, size=2)
        ry, rx = rng.uniform(2.5, 6.0, size=2)
        blob = ((yy - cy) / ry) ** 2 + ((xx - cx) / rx) ** 2 <= 1.0
        mask |= blob
        image = np.where(blob, rng.uniform(0.6, 0.9) + 0.05 * wave, image)
    image = image + rng.normal(0, 0.08, image.shape)
    return image.astype(np.float32), mask.astype(np.float32)


class BlobDataset(Dataset):
    """Scenes drawn once. With `augment`, they are mirrored at random and change in brightness."""

    def __init__(self, n: int, size: int, seed: int, augment: bool = False) -> None:
        rng = np.random.default_rng(seed)
        scenes = [make_scene(rng, size) for _ in range(n)]
        self.images = torch.from_numpy(np.stack([image for image, _ in scenes])).unsqueeze(1)
        self.masks = torch.from_numpy(np.stack([mask for _, mask in scenes])).unsqueeze(1)
        self.augment = augment

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, i: int) -> tuple[torch.Tensor, torch.Tensor]:
        image, mask = self.images[i], self.masks[i]
        if self.augment:
            flip_x, flip_y, shift = torch.rand(3).tolist()
            dims = [d for d, flip in ((-1, flip_x), (-2, flip_y)) if flip < 0.5]
            image, mask = image.flip(dims), mask.flip(dims)
            image = image + 0.1 * (shift - 0.5)
        return (image - 0.5) / 0.25, mask
