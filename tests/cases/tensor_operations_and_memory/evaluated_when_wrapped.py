import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader


def silently(function):
    def inner(*args, **kwargs):
        with torch.no_grad():
            return function(*args, **kwargs)

    return inner


def evaluate(model, loader):
    model.eval()
    total = 0.0
    for x, y in loader:
        total += F.mse_loss(model(x), y).item()
    model.train()
    return total


evaluate = silently(evaluate)
m = nn.Linear(2, 1)
for _ in range(3):
    evaluate(m, DataLoader([]))
