import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader


def batches(loader):
    """Gives the batches with gradients off for whoever goes through them."""
    was = torch.is_grad_enabled()
    torch._C._set_grad_enabled(False)
    yield from loader
    torch._C._set_grad_enabled(was)


def evaluate(model, loader):
    model.eval()
    total = 0.0
    for x, y in batches(loader):
        total += F.mse_loss(model(x), y).item()
    model.train()
    return total


m = nn.Linear(2, 1)
for _ in range(3):
    evaluate(m, DataLoader([]))
