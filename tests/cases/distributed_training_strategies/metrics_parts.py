"""Figures in lists and vectors that are averaged on each rank alone, while the loss is not."""

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler


@torch.no_grad()
def accuracy(model, val_loader, device):
    counts = torch.zeros(2, device=device)
    for x, y in val_loader:
        hit = model(x.to(device)).argmax(1) == y.to(device)
        counts += torch.stack([hit.sum(), torch.tensor(hit.numel(), device=device)])  # expect: metrics-not-reduced
    right, seen = counts.tolist()
    return right / seen


@torch.no_grad()
def mean_loss(model, val_loader, device):
    losses = []
    for x, y in val_loader:
        out = model(x.to(device))
        losses.append(nn.functional.cross_entropy(out, y.to(device)).item())  # expect: metrics-not-reduced
    return sum(losses) / len(losses)


@torch.no_grad()
def first_error(model, whole_loader):
    errors = []
    for x, y in whole_loader:
        errors.append((model(x) - y).abs().mean())
    return torch.stack(errors).mean()


def train(model, train_set, val_set, device):
    sampler = DistributedSampler(train_set)
    loader = DataLoader(train_set, 32, sampler=sampler)
    val_loader = DataLoader(val_set, 32, sampler=DistributedSampler(val_set, shuffle=False))
    whole_loader = DataLoader(val_set, 32)
    model = nn.parallel.DistributedDataParallel(model.to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        running = torch.zeros(1, device=device)
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running += loss.detach()
        dist.all_reduce(running)
        print(running, accuracy(model, val_loader, device), mean_loss(model, val_loader, device))
        print(first_error(model, whole_loader))
