import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader


class Base:
    def __init__(self, model):
        self.model = model
        self.opt = torch.optim.SGD(model.parameters(), 0.1)

    def after_backward(self, loss):
        pass

    def train_step(self, x, y):
        loss = F.mse_loss(self.model(x), y)
        self.opt.zero_grad()
        loss.backward(retain_graph=True)
        self.after_backward(loss)
        self.opt.step()

    def fit(self, loader):
        for x, y in loader:
            self.train_step(x, y)


class Penalised(Base):
    def after_backward(self, loss):
        torch.autograd.grad(loss, self.model.parameters())
