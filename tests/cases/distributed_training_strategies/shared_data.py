"""Data that is divided among the ranks, in one of the many ways; or drawn anew by each."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, Subset
from torch.utils.data.distributed import DistributedSampler

from mylib.data import make_loader, open_shards


def fit(model, loader):
    replica = DDP(model)
    optimizer = torch.optim.SGD(replica.parameters(), lr=0.1)
    for inputs, targets in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(replica(inputs), targets).backward()
        optimizer.step()


def by_sampler(model: nn.Module, dataset, args):
    sampler = DistributedSampler(dataset) if args.distributed else None
    fit(model, DataLoader(dataset, 32, shuffle=sampler is None, sampler=sampler))


def by_branch(model: nn.Module, dataset, args):
    if args.distributed:
        loader = DataLoader(dataset, 32, sampler=DistributedSampler(dataset))
    else:
        loader = DataLoader(dataset, 32, shuffle=True)
    fit(model, loader)


def by_subset(model: nn.Module, dataset):
    mine = Subset(dataset, range(dist.get_rank(), len(dataset), dist.get_world_size()))
    fit(model, DataLoader(mine, 32, shuffle=True))


def by_slice(model: nn.Module, dataset, rank: int, world_size: int):
    mine = Subset(dataset, list(range(len(dataset)))[rank::world_size])
    fit(model, DataLoader(mine, 32, shuffle=True))


def by_batches(model: nn.Module, dataset):
    sampler = DistributedSampler(dataset)
    fit(model, DataLoader(dataset, batch_sampler=BatchSampler(sampler, 32, drop_last=True)))


class Noise(Dataset):
    def __len__(self):
        return 1000

    def __getitem__(self, index):
        return torch.randn(8), torch.randn(1)


class Stream(IterableDataset):
    def __init__(self, files):
        self.files = files

    def __iter__(self):
        yield from self.files[dist.get_rank() :: dist.get_world_size()]


def drawn(model: nn.Module):
    fit(model, DataLoader(Noise(), 32))


def streamed(model: nn.Module, files):
    fit(model, DataLoader(Stream(files), 32))


def from_elsewhere(model: nn.Module, args):
    fit(model, make_loader(args))
    fit(model, DataLoader(open_shards(args), 32))


def on_one_device(model: nn.Module, dataset):
    loader = DataLoader(dataset, 32, shuffle=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for inputs, targets in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs), targets).backward()
        optimizer.step()
