"""Results that are edited in place before backward."""

import torch
import torch.nn.functional as F
from torch import nn, optim


class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.act = nn.Sigmoid()

    def forward(self, x):
        gate = self.act(self.fc(x))
        gate *= 2  # expect: inplace-breaks-autograd
        return x * gate


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 3, padding=1)
        self.bn = nn.BatchNorm2d(3)
        self.gate = Gate()

    def forward(self, x):
        out = self.bn(self.conv(x))
        out = F.relu(out)
        out += x  # expect: inplace-breaks-autograd
        return self.gate(out.mean(1)[..., 0])


def train(loader):
    model = Block()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()


def masked(net: nn.Module, loader):
    optimizer = optim.SGD(net.parameters(), lr=0.1)
    for x, y, mask in loader:
        optimizer.zero_grad()
        probability = torch.softmax(net(x), dim=1)
        probability[mask] = 0.0  # expect: inplace-breaks-autograd
        loss = F.mse_loss(probability, y)
        loss.backward()
        optimizer.step()


def weighted(net: nn.Module, loader):
    optimizer = optim.SGD(net.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        scale = net(x).exp()
        scale.clamp_(max=10)  # expect: inplace-breaks-autograd
        (scale * y).sum().backward()
        optimizer.step()
