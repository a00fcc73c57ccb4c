import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader


def fit(model, loader, opt):
    for x, y in loader:
        loss = F.mse_loss(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        torch.cuda.empty_cache()
        break


m = nn.Linear(2, 1)
for shape in (8, 16, 32):
    fit(m, DataLoader([]), torch.optim.SGD(m.parameters(), 0.1))
