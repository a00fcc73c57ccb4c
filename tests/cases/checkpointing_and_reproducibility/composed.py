"""Transforms that a Compose of this file holds."""

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Compose:
    def __init__(self, parts):
        self.parts = parts

    def __call__(self, x):
        for p in self.parts:
            x = p(x)
        return x


class Flip:
    def __init__(self):
        self.rng = np.random.default_rng(5)  # expect: dataset-owned-rng

    def __call__(self, x):
        return x.flip(-1) if self.rng.random() < 0.5 else x


class Imgs(Dataset):
    def __init__(self, x):
        self.x = x
        self.tf = Compose([Flip()])

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.tf(self.x[i])


dl = DataLoader(Imgs(torch.randn(9, 3, 8, 8)), batch_size=3, num_workers=3)
