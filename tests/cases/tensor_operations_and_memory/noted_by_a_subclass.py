import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader


class Base:
    def __init__(self, model):
        self.model = model
        self.losses = []
        self.opt = torch.optim.SGD(model.parameters(), 0.1)

    def fit(self, loader):
        for x, y in loader:
            loss = F.mse_loss(self.model(x), y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.note(loss)

    def note(self, loss):
        self.losses.append(loss)


class Light(Base):
    def note(self, loss):
        self.losses.append(loss.item())


Light(nn.Linear(3, 1)).fit(DataLoader([]))
