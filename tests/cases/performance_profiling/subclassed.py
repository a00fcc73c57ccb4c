"""Waits that subclasses bring, samples that are read once, and short runs under a profiler."""

import time
from abc import ABC, abstractmethod

import torch
import torch.nn.functional as F
from PIL import Image
from torch.utils.data import DataLoader, Dataset


class Timed(ABC):
    def measure(self, count):
        net = self.net.to("cuda")
        for _ in range(count):
            start = time.time()
            self.finish(net(self.batch.to("cuda")))
            print(time.time() - start)

    @abstractmethod
    def finish(self, out): ...


class Plain(ABC):
    def measure(self, count):
        net = self.net.to("cuda")
        for _ in range(count):
            start = time.time()
            self.finish(net(self.batch.to("cuda")))
            print(time.time() - start)  # expect: timing-without-sync

    def finish(self, out):
        self.last = out


class Waiting(Timed):
    def finish(self, out):
        self.last = out.item()


class InMemory(Dataset):
    def __init__(self, files, cache=False):
        self.files = files
        self.images = [Image.open(f) for f in files] if cache else None

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        if self.images is not None:
            return self.images[i]
        return Image.open(self.files[i])


class Seen(InMemory):
    def __init__(self, files):
        self.files, self.seen = files, {}

    def __getitem__(self, i):
        if i not in self.seen:
            self.seen[i] = Image.open(self.files[i])
        return self.seen[i]


class Files(InMemory):
    def __getitem__(self, i):
        return Image.open(self.files[i])


def train(loader, model, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x.cuda()), y.cuda()).backward()
        optimizer.step()


def fit(files, model, optimizer):
    train(DataLoader(InMemory(files, cache=True), batch_size=8), model, optimizer)
    train(DataLoader(Seen(files), batch_size=8), model, optimizer)


def short(batches, model, optimizer, epochs):
    with torch.profiler.profile() as prof:
        for _ in range(epochs):
            for x in batches[:10]:
                optimizer.zero_grad()
                model(x).mean().backward()
                optimizer.step()
    return prof.key_averages()
