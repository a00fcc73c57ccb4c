"""16x16 grey images of discs, squares and crosses with values in [-1, 1]."""

import numpy as np
import torch
from torch.utils.data import TensorDataset

SIZE = 16
KINDS = ("disc", "square", "cross")
YY, XX = np.mgrid[0:SIZE, 0:SIZE].astype(np.float32)


def draw_shape(kind: str, cx: float, cy: float, radius: float, level: float) -> np.ndarray:
    dx, dy = np.abs(XX - cx), np.abs(YY - cy)
    if kind == "disc":
        distance = np.sqrt(dx**2 + dy**2) - radius
    elif kind == "square":
        distance = np.maximum(dx, dy) - 0.85 * radius
    else:
        bar_h = np.maximum(dx - radius, dy - 1.0)
        bar_v = np.maximum(dy - radius, dx - 1.0)
        distance = np.minimum(bar_h, bar_v)
    # half a pixel of soft edge
    return level * np.clip(0.5 - distance, 0.0, 1.0)


def make_shapes(count: int, seed: int) -> TensorDataset:
    rng = np.random.default_rng(seed)
    images = np.empty((count, 1, SIZE, SIZE), dtype=np.float32)
    for i in range(count):
        kind = KINDS[rng.integers(len(KINDS))]
        cx, cy = rng.uniform(6.0, 9.0, size=2)
        images[i, 0] = draw_shape(kind, cx, cy, rng.uniform(3.0, 5.0), rng.uniform(0.7, 1.0))
    return TensorDataset(torch.from_numpy(images * 2.0 - 1.0))
