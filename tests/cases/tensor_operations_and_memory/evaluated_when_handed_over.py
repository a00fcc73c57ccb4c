import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader


def each(loader, fn):
    with torch.no_grad():
        for batch in loader:
            yield fn(*batch)


def under_no_grad(fn, *args):
    with torch.no_grad():
        return fn(*args)


def evaluate(model, loader):
    model.eval()
    total = 0.0
    for x, y in loader:
        total += F.mse_loss(model(x), y).item()
    model.train()
    return total


m = nn.Linear(2, 1)
for _ in range(3):
    under_no_grad(evaluate, m, DataLoader([]))
