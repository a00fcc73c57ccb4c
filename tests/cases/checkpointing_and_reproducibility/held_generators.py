"""Generators of what a dataset holds, and loaders that get their options as a dictionary."""

import random

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset


class Jitter:
    def __init__(self, amount):
        self.amount, self.random = amount, random.Random(13)  # expect: dataset-owned-rng

    def __call__(self, x):
        return x + self.amount * self.random.gauss(0, 1)


class Series(Dataset):
    def __init__(self, n):
        self.x, self.augment = torch.randn(n, 16), Jitter(0.1)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.augment(self.x[i])


class Noisy(Dataset):
    def __init__(self, x):
        self.x = x
        self.gen = torch.Generator()  # expect: dataset-owned-rng
        self.gen.manual_seed(0)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i] + torch.randn(self.x[i].shape, generator=self.gen)


class Shards(IterableDataset):
    def __init__(self, shards):
        super().__init__()
        self.shards = shards

    def __iter__(self):  # expect: iterable-not-sharded
        for seed in self.shards:
            g = torch.Generator().manual_seed(seed)
            for piece in torch.randint(256, (4096,), generator=g).split(33):
                yield piece[:-1], piece[1:]


class Corpus(IterableDataset):
    def __init__(self, documents, vocab):
        self.documents, self.vocab = documents, vocab

    def __iter__(self):  # expect: iterable-not-sharded
        for each in self.documents:
            yield torch.tensor([self.vocab[word] for word in each.split()])


def loaders(documents, vocab):
    options = {"batch_size": 8, "num_workers": 4}
    yield DataLoader(Series(100), shuffle=True, **options)
    yield DataLoader(Noisy(torch.randn(10, 3)), **options)
    yield DataLoader(Shards(list(range(16))), batch_size=32, num_workers=2)
    yield DataLoader(Corpus(documents, vocab), batch_size=None, num_workers=4)


# Look-alikes.


class Reseeded:
    def __init__(self):
        self.random = random.Random(13)

    def restart(self):
        self.random.seed(torch.initial_seed())

    def __call__(self, x):
        return x * self.random.random()


class Held(Dataset):
    def __init__(self, x):
        self.x, self.augment = x, Reseeded()

    def __getitem__(self, i):
        return self.augment(self.x[i])


class Quiet(Dataset):
    def __init__(self, x):
        self.x = x
        self.gen = torch.Generator().manual_seed(0)

    def __getitem__(self, i):
        return self.x[i] + torch.randn(self.x[i].shape, generator=self.gen)


class Drawn(IterableDataset):
    def __iter__(self):
        for _ in range(1000):
            yield torch.randn(3)


def others(x, init):
    alone = {"batch_size": 8, "num_workers": 0}
    told = dict(batch_size=8, num_workers=2, worker_init_fn=init)
    more = {"batch_size": 8}
    more["worker_init_fn"] = init
    yield DataLoader(Held(x), batch_size=8, num_workers=2)
    yield DataLoader(Quiet(x), **alone)
    yield DataLoader(Quiet(x), **told)
    yield DataLoader(Quiet(x), num_workers=2, **more)
    yield DataLoader(Drawn(), batch_size=8, num_workers=2)
