"""Loaders that a helper makes: what its callers give, and what the helper only passes on."""

from abc import ABC, abstractmethod

import pytest
from torch.utils.data import DataLoader, DistributedSampler


class Views:
    def __init__(self, train, held):
        self.train = self._loader(train, 4, shuffle=True)
        self.held = self._loader(held, 0)

    def _loader(self, data, workers, **more):
        return DataLoader(data, 32, num_workers=workers, persistent_workers=True, **more)  # expect: loader-args-invalid


class Sound:
    def __init__(self, train, held):
        self.train = self._loader(train, 4, shuffle=True)
        self.held = self._loader(held, 2)

    def _loader(self, data, workers=0, **more):
        return DataLoader(data, 32, num_workers=workers, persistent_workers=True, **more)


class Asking:
    def __init__(self, train, held):
        self.train = self._loader(train, 4)
        self.held = self._loader(held, 0)

    def _loader(self, data, workers, **more):
        return DataLoader(data, 32, num_workers=workers, persistent_workers=workers > 0, **more)


def nobody_says(data, workers=0, **more):
    return DataLoader(data, num_workers=workers, persistent_workers=True, **more)


def may_bring_workers(data, **more):
    return DataLoader(data, persistent_workers=True, prefetch_factor=4, **more)


def one_error(data, workers):
    return DataLoader(data, num_workers=workers, prefetch_factor=4)


def test_needs_workers(data):
    assert one_error(data, 2) is not None
    with pytest.raises(ValueError, match="prefetch_factor"):
        one_error(data, 0)


def shuffled(data, sampler, **more):
    return DataLoader(data, sampler=sampler, shuffle=True, **more)


class Base(ABC):
    """Subclasses choose the sampler, and fit() calls it without asking: it is never None."""

    def fit(self):
        self.sampler = self.choose()
        loader = self.load()
        for epoch in range(5):
            self.sampler.set_epoch(epoch)
            for batch in loader:
                self.turn(batch)

    def load(self):
        options = dict(sampler=self.sampler, shuffle=True, num_workers=4)
        return DataLoader(self.data, **options)

    @abstractmethod
    def choose(self): ...

    @abstractmethod
    def turn(self, batch): ...


class Optional(ABC):
    def fit(self):
        self.sampler = self.choose()
        loader = DataLoader(self.data, sampler=self.sampler, shuffle=self.sampler is None)
        other = DataLoader(self.data, sampler=self.chosen(), shuffle=True)
        for epoch in range(5):
            if self.sampler is not None:
                self.sampler.set_epoch(epoch)
            for batch in zip(loader, other, strict=True):
                self.turn(batch)

    @abstractmethod
    def choose(self): ...

    @abstractmethod
    def chosen(self): ...

    @abstractmethod
    def turn(self, batch): ...


class Spread(Optional):
    def choose(self):
        return DistributedSampler(self.data)
