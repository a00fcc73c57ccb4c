import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader


class Rnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(8, 16)
        self.out = nn.Linear(16, 1)

    def forward(self, x, hidden):
        y, hidden = self.rnn(x, hidden)
        return self.out(y), hidden


class Base:
    def __init__(self, model):
        self.model = model
        self.h = None
        self.opt = torch.optim.SGD(model.parameters(), 0.1)

    def after_step(self):
        pass

    def fit(self, loader):
        for x, y in loader:
            out, self.h = self.model(x, self.h)
            loss = F.mse_loss(out, y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.after_step()


class Truncated(Base):
    def after_step(self):
        self.h = self.h.detach()


Truncated(Rnn()).fit(DataLoader([]))
