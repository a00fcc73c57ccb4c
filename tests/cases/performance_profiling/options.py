"""Arguments of a DataLoader that come from options, constants and helpers."""

import torch
from torch.utils.data import DataLoader, IterableDataset, SubsetRandomSampler

NUM_WORKERS = 0
COMMON = {"batch_size": 8, "num_workers": NUM_WORKERS}


class Stream(IterableDataset):
    def __iter__(self):
        yield from torch.ones(4, 2)


def by_constants(dataset):
    return DataLoader(dataset, num_workers=NUM_WORKERS, prefetch_factor=2)  # expect: loader-args-invalid


def by_options(dataset):
    return DataLoader(dataset, persistent_workers=True, **COMMON)  # expect: loader-args-invalid


def of_a_stream():
    return DataLoader(Stream(), batch_size=8, shuffle=True)  # expect: loader-args-invalid


def sampled(dataset, kept):
    sampler = SubsetRandomSampler(kept)
    shuffle = True
    return DataLoader(dataset, batch_size=8, shuffle=shuffle, sampler=sampler)  # expect: loader-args-invalid


def without_batches(dataset):
    return DataLoader(dataset, batch_size=None, drop_last=True)  # expect: loader-args-invalid


def in_other_processes(dataset):
    return DataLoader(dataset, batch_size=8, multiprocessing_context="spawn")  # expect: loader-args-invalid


def asked(dataset):
    if NUM_WORKERS > 0:
        return DataLoader(dataset, num_workers=NUM_WORKERS, persistent_workers=True)
    return DataLoader(dataset, num_workers=NUM_WORKERS)


def changed(dataset, workers):
    options = {"num_workers": 0, "persistent_workers": True}
    options["num_workers"] = workers
    return DataLoader(dataset, **options)


def either(dataset, kept):
    sampler = None
    if kept is not None:
        sampler = SubsetRandomSampler(kept)
    return DataLoader(dataset, shuffle=sampler is None, sampler=sampler)


def given(dataset, workers=0):
    return DataLoader(dataset, num_workers=workers, persistent_workers=True)


def a_stream_as_it_is():
    return DataLoader(Stream(), batch_size=8, num_workers=2, persistent_workers=True)


def written_beside(dataset):
    return DataLoader(dataset, prefetch_factor=4, **{"num_workers": 0})  # expect: loader-args-invalid


def beside_when_asked(dataset, workers):
    return DataLoader(dataset, prefetch_factor=4, **({"num_workers": workers} if workers else {}))
