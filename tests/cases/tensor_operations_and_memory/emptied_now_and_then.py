import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader


def fit(model, loader, opt):
    for step, (x, y) in enumerate(loader):
        loss = F.mse_loss(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 500:
            continue
        torch.cuda.empty_cache()


m = nn.Linear(2, 1)
fit(m, DataLoader([]), torch.optim.SGD(m.parameters(), 0.1))
