"""A loader that gets its options from a helper's caller: as it should be."""

import glob

import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset


class Npz(IterableDataset):
    def __init__(self, files):
        self.files = files

    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        for f in self.files[info.id :: info.num_workers] if info else self.files:
            yield from np.load(f)["x"]


def make_loader(ds, **kw):
    return DataLoader(ds, pin_memory=True, **kw)


train = make_loader(Npz(sorted(glob.glob("*.npz"))), batch_size=32, num_workers=4)
