import numpy as np
import torch
from torch.utils.data import Dataset, Sampler

from .boxes import AnchorGrid

CLASSES = ("filled", "hollow")


class SquaresDataset(Dataset):
    """Scenes of one to three squares that do not touch. A scene depends on its index and the split's seed alone."""

    def __init__(self, n: int, seed: int, size: int = 32) -> None:
        self.n, self.seed, self.size = n, seed, size

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        rng = np.random.default_rng((self.seed, index))
        image = rng.normal(0.0, 0.2, (self.size, self.size)).astype(np.float32)
        taken = np.zeros((self.size, self.size), dtype=bool)
        boxes, labels = [], []
        wanted = rng.integers(1, 4)
        for _ in range(12):
            side = int(rng.integers(7, 14))
            x, y = rng.integers(0, self.size - side + 1, size=2)
            if taken[max(y - 1, 0) : y + side + 1, max(x - 1, 0) : x + side + 1].any():
                continue
            taken[y : y + side, x : x + side] = True
            label, level = int(rng.integers(len(CLASSES))), rng.uniform(0.5, 1.0)
            image[y : y + side, x : x + side] += level
            if label == 1:
                image[y + 2 : y + side - 2, x + 2 : x + side - 2] -= level
            boxes.append((x, y, x + side, y + side))
            labels.append(label)
            if len(boxes) == wanted:
                break
        return (
            torch.from_numpy(image).unsqueeze(0),
            torch.tensor(np.array(boxes), dtype=torch.float32),
            torch.tensor(labels),
        )


class DetectionCollate:
    """Stacks the images, and matches every image's boxes to the anchors."""

    def __init__(self, grid: AnchorGrid) -> None:
        self.grid = grid

    def __call__(self, batch) -> dict:
        images, boxes, labels = zip(*batch, strict=True)
        assigned = [self.grid.assign(b, c) for b, c in zip(boxes, labels, strict=True)]
        return {
            "images": torch.stack(images),
            "anchor_classes": torch.stack([classes for classes, _ in assigned]),
            "anchor_offsets": torch.stack([offsets for _, offsets in assigned]),
            "boxes": list(boxes),
            "labels": list(labels),
        }


class EpochSampler(Sampler[int]):
    """A new order in every epoch, known from the seed and the epoch's number."""

    def __init__(self, n: int, seed: int) -> None:
        self.n, self.seed, self.epoch = n, seed, 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return self.n

    def __iter__(self):
        generator = torch.Generator().manual_seed(self.seed * 1000 + self.epoch)
        yield from torch.randperm(self.n, generator=generator).tolist()
