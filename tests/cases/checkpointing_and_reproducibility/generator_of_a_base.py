"""A generator that a base class keeps behind a property."""

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Base(Dataset):
    def __init__(self, n, seed):
        self.n = n
        self.seed = seed
        self._rng = np.random.default_rng(seed)  # expect: dataset-owned-rng

    def __len__(self):
        return self.n

    @property
    def rng(self):
        return self._rng


class Noisy(Base):
    def __init__(self, signals, seed=3):
        super().__init__(len(signals), seed)
        self.signals = signals

    def __getitem__(self, i):
        s = self.signals[i]
        return torch.as_tensor(s + self.rng.normal(0, 0.1, s.shape))


train = DataLoader(Noisy(np.zeros((10, 5))), batch_size=2, shuffle=True, num_workers=2)
