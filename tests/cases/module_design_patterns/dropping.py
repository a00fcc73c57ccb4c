"""Dropout that is told when to stop, and dropout that is not."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.functional import dropout, relu


class Net(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p = p
        self.conv2_drop = nn.Dropout2d()
        self.fc1 = nn.Linear(320, 50)
        self.fc2 = nn.Linear(50, 10)

    def forward(self, x):
        x = x.view(-1, 320)
        x = F.relu(self.fc1(x))
        x = F.dropout(x, p=self.p)  # expect: dropout-always-on
        x = self.head(x)
        return F.log_softmax(x, dim=1)

    def head(self, x):
        x = relu(dropout(x))  # expect: dropout-always-on
        x = torch.nn.functional.alpha_dropout(  # expect: dropout-always-on
            x,
            0.2,
        )
        x = nn.Dropout(0.3)(x)  # expect: dropout-always-on
        return self.fc2(x)


def mlp(x, weight):
    return F.dropout(F.relu(F.linear(x, weight)), 0.5)  # expect: dropout-always-on


def noised(x):
    return F.dropout(x, 0.5)


def mlp_in_mode(x, weight, training):
    return F.dropout(F.linear(x, weight), 0.5, training)


class Functional(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(width, width))

    def forward(self, x):
        x = mlp(x, self.weight)
        if self.training:
            x = drop_path(x)
        return mlp_in_mode(noised(x), self.weight, self.training)


def drop_path(x):
    return F.dropout2d(x, 0.2)


class GCN(nn.Module):
    def __init__(self, conv1, conv2):
        super().__init__()
        self.conv1, self.conv2 = conv1, conv2

    def forward(self, x, edges):
        hidden = [F.dropout2d(F.elu(self.conv1(x, edges)), p=0.6, inplace=False) for _ in range(2)]  # expect: dropout-always-on
        return self.conv2(hidden[0], edges)


class Told(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p = p
        self.drop = nn.Dropout(p)
        self.fc = nn.Linear(4, 4)

    def forward(self, x, **options):
        x = F.dropout(x, self.p, self.training)
        x = F.dropout(x, p=self.p, training=self.training)
        x = F.dropout(x, p=0.0)
        x = F.dropout(x, **options)
        x = self.drop(x)
        return dropout(self.fc(x), 0.5, training=True)


class Guarded(nn.Module):
    def forward(self, x):
        if self.training:
            x = F.dropout(x, 0.5)
        return x


class LeavesEarly(nn.Module):
    def forward(self, x):
        if not self.training:
            return x
        return F.dropout(x, 0.5)


class RateByMode(nn.Module):
    def __init__(self, rate):
        super().__init__()
        self.rate = rate

    def forward(self, x):
        rate = self.rate if self.training else 0.0
        return F.dropout(x, rate)


class MCDropoutHead(nn.Module):
    """Stays on: the spread over many passes is the uncertainty."""

    def forward(self, x):
        return F.dropout(x, 0.1)


class Prenet(nn.Module):
    def forward(self, x):
        return F.dropout(x, 0.5)  # on at inference, too: it makes the speech vary


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def corrupt(self, x):
        return F.dropout(x, 0.3)

    def forward(self, x):
        return self.fc(self.corrupt(x))


class Same:
    """No module: there is no mode to follow."""

    def augment(self, x):
        return F.dropout(x, 0.5)


def perturb(x):
    return F.dropout(x, 0.5)
