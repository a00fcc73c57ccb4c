"""Every worker draws its own files."""

import random

import torch
from torch.utils.data import DataLoader, IterableDataset


class Pairs(IterableDataset):
    """Endless by the trainer's step count: workers draw independently."""

    def __init__(self, files, n):
        self.files, self.n = files, n

    def __iter__(self):
        for _ in range(self.n):
            f = random.choice(self.files)
            yield torch.load(f, weights_only=True)


loader = DataLoader(Pairs(["a", "b"], 10), batch_size=4, num_workers=2)
