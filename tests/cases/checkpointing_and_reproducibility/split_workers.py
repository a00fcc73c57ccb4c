"""Workers are told their part, or reseed what the dataset owns: nothing is wrong here."""

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset


class Stream(IterableDataset):
    def __init__(self, path):
        self.path = path
        self.start, self.stop = 0, 1000

    def __iter__(self):
        return iter(range(self.start, self.stop))


def split(worker_id):
    info = torch.utils.data.get_worker_info()
    part = (info.dataset.stop - info.dataset.start) // info.num_workers
    info.dataset.start += worker_id * part
    info.dataset.stop = info.dataset.start + part


class Noisy(Dataset):
    def __init__(self, data):
        self.data = data
        self.rng = np.random.default_rng()

    def __getitem__(self, index):
        return self.data[index] + self.rng.normal(size=self.data[index].shape)


def main(data):
    stream = DataLoader(Stream("x"), num_workers=4, worker_init_fn=split)
    noisy = DataLoader(Noisy(data), num_workers=4, worker_init_fn=lambda i: setattr(torch.utils.data.get_worker_info().dataset, "rng", np.random.default_rng(i)))
    return stream, noisy
