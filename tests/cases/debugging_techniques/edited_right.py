"""Edits in place that backward does not mind."""

import torch
import torch.nn.functional as F
from torch import nn, optim


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 3, padding=1)
        self.bn = nn.BatchNorm2d(3)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        out = self.relu(self.bn(self.conv(x)))
        out = self.bn(self.conv(out))
        out += x
        out = F.leaky_relu(out)
        out *= 2
        gate = torch.sigmoid(self.conv(out))
        gate = gate * 2
        shown = torch.sigmoid(self.conv(out)).detach()
        shown *= 255
        if not self.training:
            boxes = torch.sigmoid(out)
            boxes[..., :2] *= 8
            return boxes
        return gate + shown


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 1)

    def forward(self, x):
        y = self.conv(x).sigmoid()
        if not self.training:
            y[..., 0:2] = y[..., 0:2] * 2 - 0.5
        return y


class OnlyForInference(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x):
        out = torch.sigmoid(self.fc(x))
        out *= 255
        return out


def train(loader):
    model, detector = Block(), Detector()
    optimizer = optim.SGD([*model.parameters(), *detector.parameters()], lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y) + F.mse_loss(detector(x), y)
        loss.backward()
        optimizer.step()


def shown_only(loader):
    model, picture = Block(), OnlyForInference()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
        picture(x)
    return picture(x)


def edited_afterwards(net: nn.Module, loader):
    optimizer = optim.SGD(net.parameters(), lr=0.1)
    total = torch.zeros(1)
    for x, y in loader:
        optimizer.zero_grad()
        probability = torch.softmax(net(x), dim=1)
        weights = torch.exp(y)
        weights /= weights.sum()  # expect: unstable-composition
        (probability * weights).sum().backward()
        probability *= 100
        total += probability.max().item()
        optimizer.step()
    return total


def without_gradients(net: nn.Module, teacher: nn.Module, loader):
    optimizer = optim.SGD(net.parameters(), lr=0.1)
    for x, _ in loader:
        with torch.no_grad():
            goal = torch.softmax(teacher(x), dim=1)
            goal += 0.1
        optimizer.zero_grad()
        F.mse_loss(net(x), goal).backward()
        optimizer.step()
