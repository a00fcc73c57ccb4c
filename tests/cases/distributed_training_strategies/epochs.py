"""The usual DDP script, split into functions, without set_epoch."""

import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler
from tqdm import tqdm


def build_loaders(train_set: Dataset, valid_set: Dataset, batch_size: int):
    train_sampler = DistributedSampler(train_set, drop_last=True)  # expect: sampler-epoch-not-set
    valid_sampler = DistributedSampler(valid_set, shuffle=False)
    train_loader = DataLoader(train_set, batch_size, sampler=train_sampler, num_workers=4)
    valid_loader = DataLoader(valid_set, batch_size, sampler=valid_sampler)
    return train_loader, valid_loader


def train_one_epoch(model, loader, optimizer, device):
    model.train()
    for x, y in tqdm(loader):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device))
        loss.backward()
        optimizer.step()


@torch.no_grad()
def validate(model, loader, device):
    model.eval()
    return sum((model(x.to(device)).argmax(1).cpu() == y).sum().item() for x, y in loader)


def main(train_set, valid_set, model, epochs):
    dist.init_process_group("nccl")
    device = int(os.environ["LOCAL_RANK"])
    train_loader, valid_loader = build_loaders(train_set, valid_set, 64)
    model = DDP(model.to(device), device_ids=[device])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(epochs):
        train_one_epoch(model, train_loader, optimizer, device)
        print(epoch, validate(model, valid_loader, device))
    dist.destroy_process_group()
