"""Synthetic 8x8 grey images: soft bars and blobs, with values between -1 and 1."""

import numpy as np
import torch
from torch import Tensor

SIZE = 8


def make_images(count: int, rng: np.random.Generator) -> Tensor:
    ys, xs = np.meshgrid(np.arange(SIZE), np.arange(SIZE), indexing="ij")
    kind = rng.integers(0, 3, size=(count, 1, 1))
    cx = rng.uniform(1.5, SIZE - 2.5, size=(count, 1, 1))
    cy = rng.uniform(1.5, SIZE - 2.5, size=(count, 1, 1))
    width = rng.uniform(0.9, 1.5, size=(count, 1, 1))

    dx = (xs - cx) ** 2
    dy = (ys - cy) ** 2
    distance = np.where(kind == 0, dx, np.where(kind == 1, dy, dx + dy))
    intensity = np.exp(-distance / (2.0 * width**2))
    images = 2.0 * intensity - 1.0
    return torch.from_numpy(images.astype(np.float32)).unsqueeze(1)


class BatchStream:
    """Endless shuffled batches of a tensor; can be saved and continued in the middle of an epoch."""

    def __init__(self, data: Tensor, batch_size: int, seed: int) -> None:
        self.data = data
        self.batch_size = batch_size
        self.generator = torch.Generator().manual_seed(seed)
        self.order = torch.randperm(len(data), generator=self.generator)
        self.position = 0

    def __iter__(self) -> "BatchStream":
        return self

    def __next__(self) -> Tensor:
        if self.position + self.batch_size > len(self.data):
            self.order = torch.randperm(len(self.data), generator=self.generator)
            self.position = 0
        rows = self.order[self.position : self.position + self.batch_size]
        self.position += self.batch_size
        return self.data[rows]

    def state_dict(self) -> dict:
        return {"generator": self.generator.get_state(), "order": self.order.clone(), "position": self.position}

    def load_state_dict(self, state: dict) -> None:
        self.generator.set_state(state["generator"])
        self.order = state["order"]
        self.position = state["position"]
