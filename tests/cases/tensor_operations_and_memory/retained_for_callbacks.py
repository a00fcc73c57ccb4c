import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader


def fit(model, loader, opt, callbacks):
    for x, y in loader:
        loss = F.mse_loss(model(x), y)
        opt.zero_grad()
        loss.backward(retain_graph=True)
        for cb in callbacks:
            cb.after_backward(model, loss)
        opt.step()
