import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader


class LM(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.emb = nn.Embedding(n, 32)
        self.rnn = nn.LSTM(32, 64)
        self.out = nn.Linear(64, n)

    def forward(self, x, hidden):
        y, hidden = self.rnn(self.emb(x), hidden)
        return self.out(y), hidden


def train(model, chunks, opt):
    hidden = (torch.zeros(1, 8, 64), torch.zeros(1, 8, 64))
    for x, y in chunks:
        opt.zero_grad()
        for part in hidden:
            part.detach_()
        logits, hidden = model(x, hidden)
        loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
        loss.backward()
        opt.step()


m = LM(100)
train(m, DataLoader([]), torch.optim.Adam(m.parameters()))
