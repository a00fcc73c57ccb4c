"""Datasets in worker processes: generators of their own, and streams that every worker reads from the start."""

import argparse
import random

import numpy as np
import torch
from torch.utils.data import ConcatDataset, DataLoader, Dataset, IterableDataset, random_split


class Crops(Dataset):
    def __init__(self, images, size=32, seed=0):
        self.images, self.size = images, size
        self.rng = np.random.default_rng(seed)  # expect: dataset-owned-rng

    def __len__(self):
        return len(self.images)

    def _corner(self, height, width):
        return self.rng.integers(0, height - self.size), self.rng.integers(0, width - self.size)

    def __getitem__(self, index):
        image = self.images[index]
        top, left = self._corner(*image.shape[-2:])
        return image[..., top : top + self.size, left : left + self.size]


class Masked(Dataset):
    def __init__(self, tokens: torch.Tensor, generator: torch.Generator):
        self.tokens, self.generator = tokens, generator

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, index):
        mask = torch.rand(self.tokens.shape[1], generator=self.generator) < 0.15
        return self.tokens[index], mask


class Lines(IterableDataset):
    def __init__(self, path, tokenizer):
        self.path, self.tokenizer = path, tokenizer

    def __iter__(self):  # expect: iterable-not-sharded
        with open(self.path) as file:
            for line in file:
                yield self.tokenizer(line)


class Span(IterableDataset):
    def __init__(self, start, end):
        super().__init__()
        self.start, self.end = start, end

    def __iter__(self):  # expect: iterable-not-sharded
        return iter(range(self.start, self.end))


class Records(IterableDataset):
    def __init__(self, records, shuffle=True):
        self.records, self.shuffle = list(records), shuffle

    def parsed(self):
        if self.shuffle:
            random.shuffle(self.records)
        for record in self.records:
            yield torch.tensor(record)

    def __iter__(self):  # expect: iterable-not-sharded
        yield from self.parsed()


def seed_worker(worker_id):
    np.random.seed(torch.initial_seed() % 2**32)


def main(images, tokens, tokenizer):
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--eval-workers", type=int, default=0)
    args = parser.parse_args()
    train, val = random_split(ConcatDataset([Crops(images), Crops(images, seed=1)]), [0.9, 0.1])
    crops = DataLoader(train, 64, shuffle=True, num_workers=args.workers, worker_init_fn=seed_worker)
    generator = torch.Generator().manual_seed(7)  # expect: dataset-owned-rng
    masked = DataLoader(Masked(tokens, generator), batch_size=32, num_workers=4, persistent_workers=True)
    lines = DataLoader(Lines("corpus.txt", tokenizer), batch_size=8, num_workers=4)
    span = DataLoader(Span(0, 1000), num_workers=args.workers)
    records = DataLoader(Records(tokens), num_workers=2)
    quiet = DataLoader(Seeded(images), num_workers=args.eval_workers)
    return crops, masked, lines, span, records, quiet, val


# Look-alikes.


class Seeded(Dataset):
    """Read without workers only."""

    def __init__(self, images):
        self.images, self.rng = images, np.random.RandomState(0)

    def __getitem__(self, index):
        return self.images[index] + self.rng.randn()


class PerEpoch(Dataset):
    def __init__(self, images):
        self.images = images
        self.rng = np.random.default_rng(0)

    def set_epoch(self, epoch):
        self.rng = np.random.default_rng(epoch)

    def __getitem__(self, index):
        return self.images[index] + self.rng.normal()


class PerSample(Dataset):
    def __init__(self, images, seed=0):
        self.images, self.seed = images, seed
        self.order = random.Random(seed).sample(range(len(images)), 100)
        split = np.random.default_rng(seed)
        self.keep = split.permutation(len(images))

    def __getitem__(self, index):
        rng = np.random.default_rng(self.seed + index)
        return self.images[self.order[index]] + rng.normal() + np.random.rand() + random.random()


class Drawn(IterableDataset):
    """Samples that are drawn, without end or as many as are asked for."""

    def __init__(self, count):
        self.count = count

    def __iter__(self):
        for _ in range(self.count):
            yield torch.randn(8)


class Replay(IterableDataset):
    def __init__(self, buffer):
        self.buffer = buffer

    def __iter__(self):
        while True:
            yield self.buffer.sample()


class Source(IterableDataset):
    """What it goes through may split itself."""

    def __init__(self, source):
        self.source = source

    def __iter__(self):
        for sample in self.source:
            yield sample


class Sharded(IterableDataset):
    def __init__(self, files, shard, shards):
        self.files = sorted(files)[shard::shards]

    def __iter__(self):
        for name in self.files:
            with open(name) as file:
                yield from file


class Single(IterableDataset):
    def __init__(self, path):
        self.path = path

    def __iter__(self):
        with open(self.path) as file:
            yield from file


def sound(images, files, buffer, source):
    yield DataLoader(PerEpoch(images), num_workers=4)
    yield DataLoader(PerSample(images), num_workers=4)
    yield DataLoader(Drawn(1000), num_workers=4)
    yield DataLoader(Replay(buffer), num_workers=4)
    yield DataLoader(Source(source), num_workers=4)
    yield DataLoader(Sharded(files, 0, 2), num_workers=4)
    yield DataLoader(Single("a.txt"), num_workers=1)


class Payloads(IterableDataset):
    def __init__(self, shards):
        self.shards = shards

    def __iter__(self):  # expect: iterable-not-sharded
        for shard in self.shards:
            for item in torch.load(shard, weights_only=True):
                yield item["x"], item["y"]


def of_shards(shards):
    return DataLoader(Payloads(shards), batch_size=64, num_workers=8)
