"""A queue hands every item to one worker."""

import multiprocessing as mp

import torch
from torch.utils.data import DataLoader, IterableDataset


class FromQueue(IterableDataset):
    """All workers take from one queue; each item goes to one of them."""

    def __init__(self, files):
        self.queue = mp.Queue()
        for f in files:
            self.queue.put(f)

    def __iter__(self):
        while not self.queue.empty():
            yield torch.load(self.queue.get(), weights_only=True)


loader = DataLoader(FromQueue(["a", "b"]), batch_size=4, num_workers=2)
