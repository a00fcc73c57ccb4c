import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader


class Base:
    def __init__(self, model):
        self.model = model
        self.outs = []
        self.opt = torch.optim.SGD(model.parameters(), 0.1)

    def collect(self, loader):
        for x, y in loader:
            out = self.model(x)
            loss = F.mse_loss(out, y)
            loss.backward()
            self.outs.append(out)

    def update(self):
        raise NotImplementedError


class Meta(Base):
    def update(self):
        total = torch.stack(self.outs).pow(2).sum()
        total.backward()
        self.opt.step()
        self.outs.clear()
