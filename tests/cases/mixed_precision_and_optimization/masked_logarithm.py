"""The logarithm is taken of what lies strictly between 0 and 1: a mask has left the rest out."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.sigmoid = nn.Linear(6, 1), nn.Sigmoid()

    def forward(self, x):
        return self.sigmoid(self.fc(x))


def weighted(outputs, wa, wb):
    o = outputs[:, 0]
    inside = (o > 0) & (o < 1)
    return -wb[inside] * torch.log(o[inside]) - wa[inside] * torch.log(1.0 - o[inside])


net = Net()
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for _ in range(5):
    loss = weighted(net(torch.randn(16, 6)), torch.ones(16), torch.ones(16)).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
