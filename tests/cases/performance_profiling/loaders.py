"""DataLoaders whose arguments contradict each other, and their look-alikes."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils import data
from torch.utils.data import DataLoader, Dataset, RandomSampler, WeightedRandomSampler


def contradictions(dataset, weights, batches):
    yield DataLoader(dataset, batch_size=8, persistent_workers=True)  # expect: loader-args-invalid
    yield DataLoader(dataset, 8, True, num_workers=0, prefetch_factor=4)  # expect: loader-args-invalid
    yield data.DataLoader(dataset, shuffle=True, sampler=RandomSampler(dataset))  # expect: loader-args-invalid
    yield DataLoader(dataset, 8, True, WeightedRandomSampler(weights, 10))  # expect: loader-args-invalid
    yield DataLoader(dataset, batch_size=8, batch_sampler=data.BatchSampler(batches, 4, False))  # expect: loader-args-invalid


def sound(dataset, workers, sampler, options, batches):
    yield DataLoader(dataset, num_workers=workers, persistent_workers=True)
    yield DataLoader(dataset, num_workers=2, persistent_workers=True, prefetch_factor=4)
    yield DataLoader(dataset, persistent_workers=workers > 0)
    yield DataLoader(dataset, persistent_workers=False, prefetch_factor=None)
    yield DataLoader(dataset, shuffle=(sampler is None), sampler=sampler)
    yield DataLoader(dataset, shuffle=True, sampler=None)
    yield DataLoader(dataset, shuffle=False, sampler=RandomSampler(dataset))
    yield DataLoader(dataset, persistent_workers=True, **options)
    yield DataLoader(dataset, batch_sampler=data.BatchSampler(batches, 4, False))
    yield DataLoader(dataset, batch_size=1, batch_sampler=data.BatchSampler(batches, 4, False))


def test_it_raises(dataset):
    with pytest.raises(ValueError):
        DataLoader(dataset, persistent_workers=True)


def is_understood(dataset):
    try:
        return DataLoader(dataset, prefetch_factor=2)
    except ValueError:
        return None


class Spectra(Dataset):
    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        return torch.from_numpy(np.load(self.paths[index]))


class InMemory(Spectra):
    def __getitem__(self, index):
        return torch.ones(3)


def fit(model: nn.Module, paths, optimizer: torch.optim.Optimizer):
    loader = DataLoader(Spectra(paths), batch_size=8, shuffle=True)  # expect: worker-count
    for batch in loader:
        optimizer.zero_grad()
        model(batch).mean().backward()
        optimizer.step()


def fit_from_memory(model: nn.Module, paths, optimizer: torch.optim.Optimizer):
    for batch in DataLoader(InMemory(paths), batch_size=8, shuffle=True):
        optimizer.zero_grad()
        model(batch).mean().backward()
        optimizer.step()


def fit_as_told(model: nn.Module, paths, optimizer: torch.optim.Optimizer, options):
    for batch in DataLoader(Spectra(paths), batch_size=8, **options):
        optimizer.zero_grad()
        model(batch).mean().backward()
        optimizer.step()


def fit_in_the_main_process(model: nn.Module, paths, optimizer: torch.optim.Optimizer):
    for batch in DataLoader(Spectra(paths), batch_size=8, num_workers=0):  # expect: worker-count
        optimizer.zero_grad()
        model(batch).mean().backward()
        optimizer.step()


def fit_pinned(model: nn.Module, dataset, optimizer: torch.optim.Optimizer, device):
    for inputs, targets in DataLoader(dataset, batch_size=8, num_workers=2, pin_memory=True):
        inputs, targets = inputs.to(device), targets.cuda()  # expect: pin-memory-blocking
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs), targets).backward()
        optimizer.step()


def fit_pinned_and_told(model: nn.Module, dataset, optimizer: torch.optim.Optimizer, device):
    for inputs, targets in DataLoader(dataset, batch_size=8, num_workers=2, pin_memory=True):
        inputs = inputs.to(device, non_blocking=True).to(torch.float32)
        targets = targets.to(torch.float32)
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs), targets.to(device, non_blocking=True)).backward()
        optimizer.step()


def fit_unpinned(model: nn.Module, dataset, optimizer: torch.optim.Optimizer, device):
    for inputs, targets in DataLoader(dataset, batch_size=8, num_workers=2):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs.to(device)), targets.to(device)).backward()
        optimizer.step()
