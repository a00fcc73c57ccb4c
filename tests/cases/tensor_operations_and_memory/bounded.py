"""Containers that let go: of the oldest, of the last step's, or of all now and then."""

from collections import defaultdict

import torch
import torch.nn.functional as F
from torch import nn


def the_oldest_is_popped(model: nn.Module, loader, optimizer: torch.optim.Optimizer):
    recent = []
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        recent.append(loss)
        if len(recent) > 5:
            recent.pop(0)


def under_the_same_names(model: nn.Module, loader, optimizer: torch.optim.Optimizer, heads):
    latest = {}
    for x, targets in loader:
        optimizer.zero_grad()
        whole = 0
        for name, head in heads.items():
            loss = F.mse_loss(head(model(x)), targets[name])
            latest[name] = loss
            whole = whole + loss
        whole.backward()
        optimizer.step()


def in_a_ring(model: nn.Module, loader, optimizer: torch.optim.Optimizer):
    ring = [None] * 8
    for number, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        ring[number % 8] = loss


def under_a_new_number(model: nn.Module, loader, optimizer: torch.optim.Optimizer):
    kept = {}
    for number, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        kept[number] = loss  # expect: graph-retained


def under_a_name_in_a_list(model: nn.Module, loader, optimizer: torch.optim.Optimizer):
    log = defaultdict(list)
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        log["loss"].append(loss)  # expect: graph-retained
