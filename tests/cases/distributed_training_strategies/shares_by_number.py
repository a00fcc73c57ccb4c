"""Each rank takes its own share, by its number under a short name."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset


class Files(Dataset):
    def __init__(self, paths):
        self.paths = list(paths)

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, at):
        return torch.load(self.paths[at])


def fit(model, loader):
    opt = torch.optim.SGD(model.parameters(), 0.1)
    for x, y in loader:
        opt.zero_grad()
        nn.functional.cross_entropy(model(x.cuda()), y.cuda()).backward()
        opt.step()


def portion(items, i, n):
    size = len(items) // n
    return items[i * size : (i + 1) * size]


def sliced(paths):
    dist.init_process_group("nccl")
    r, w = dist.get_rank(), dist.get_world_size()
    model = DDP(nn.Linear(8, 8).cuda(), device_ids=[r % 8])
    fit(model, DataLoader(Files(paths[r::w]), 8, shuffle=True, num_workers=2))


def helped(paths):
    dist.init_process_group("nccl")
    r, w = dist.get_rank(), dist.get_world_size()
    model = DDP(nn.Linear(8, 8).cuda(), device_ids=[r % 8])
    loader = DataLoader(Files(portion(paths, r, w)), 8, shuffle=True, num_workers=2)
    fit(model, loader)


def picked(paths):
    dist.init_process_group("nccl")
    r, w = dist.get_rank(), dist.get_world_size()
    model = DDP(nn.Linear(8, 8).cuda(), device_ids=[r % 8])
    data = Files(paths)
    loader = DataLoader(Subset(data, range(r, len(data), w)), 8, num_workers=2)
    fit(model, loader)


def own_file():
    dist.init_process_group("nccl")
    r, w = dist.get_rank(), dist.get_world_size()
    model = DDP(nn.Linear(8, 8).cuda(), device_ids=[r % 8])
    x, y = torch.load(f"part{r}.pt")
    loader = DataLoader(TensorDataset(x, y), 8, shuffle=True, num_workers=2)
    fit(model, loader)
