import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

from metrics import Mean


def fit(model, loader, opt):
    history = {"loss": Mean(), "acc": Mean()}
    for x, y in loader:
        loss = F.mse_loss(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        history["loss"].append(loss)
        history["acc"] += loss


m = nn.Linear(2, 1)
fit(m, DataLoader([]), torch.optim.SGD(m.parameters(), 0.1))
