"""Binary images of 12x12 pixels: one rectangle or one ellipse in each."""

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

SIDE = 12
YY, XX = np.ogrid[0:SIDE, 0:SIDE]


class FigureDataset(Dataset):
    def __init__(self, count: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.images = torch.from_numpy(np.stack([self._draw(rng) for _ in range(count)])).unsqueeze(1)

    @staticmethod
    def _draw(rng: np.random.Generator) -> np.ndarray:
        cy, cx = rng.uniform(3.5, SIDE - 4.5, size=2)
        ry, rx = rng.uniform(1.6, 4.0, size=2)
        if rng.random() < 0.5:
            mask = ((YY - cy) / ry) ** 2 + ((XX - cx) / rx) ** 2 <= 1.0
        else:
            mask = (abs(YY - cy) <= ry) & (abs(XX - cx) <= rx)
        # a little salt and pepper keeps any two images apart
        flips = rng.random((SIDE, SIDE)) < 0.01
        return (mask ^ flips).astype(np.float32)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.images[index]


def build_loaders(cfg: dict, generator: torch.Generator, pin_memory: bool) -> tuple[DataLoader, DataLoader]:
    train = FigureDataset(cfg["train_size"], seed=cfg["data_seed"])
    val = FigureDataset(cfg["val_size"], seed=cfg["data_seed"] + 1)
    train_loader = DataLoader(
        train, batch_size=cfg["batch_size"], shuffle=True, drop_last=True, generator=generator, pin_memory=pin_memory
    )
    val_loader = DataLoader(val, batch_size=256, pin_memory=pin_memory)
    return train_loader, val_loader
