"""Forms of super-init-missing and, beside each, the same code made right."""

import copy
import itertools
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Encoder1(nn.Module):
    def __init__(self, cfg):
        self.cfg = cfg
        self.embed = nn.Embedding(cfg.vocab, cfg.dim)  # expect: super-init-missing
        super().__init__()

    def forward(self, ids):
        return self.embed(ids).mean(1)


class EncoderRight1(nn.Module):
    def __init__(self, cfg):
        self.cfg = cfg
        super().__init__()
        self.embed = nn.Embedding(cfg.vocab, cfg.dim)

    def forward(self, ids):
        return self.embed(ids).mean(1)


class Base2(nn.Module):
    def __init__(self, width):
        self.width = width

class Head2(Base2):
    def __init__(self, width, n):
        super().__init__(width)
        self.out = nn.Linear(width, n)

    def forward(self, x):
        return self.out(x)


class BaseRight2(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width

class HeadRight2(BaseRight2):
    def __init__(self, width, n):
        super().__init__(width)
        self.out = nn.Linear(width, n)

    def forward(self, x):
        return self.out(x)


class DiceLoss3(nn.Module):
    def __init__(self, eps=1e-6, weight=None):  # expect: super-init-missing
        self.eps = eps
        self.weight = weight

    def forward(self, logits, target):
        p = logits.sigmoid()
        inter = (p * target).sum((2, 3))
        return 1 - (2 * inter / (p.sum((2, 3)) + target.sum((2, 3)) + self.eps)).mean()

criterion = DiceLoss3()
def epoch3(net, loader, opt):
    for x, y in loader:
        loss = criterion(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()


class DiceLossRight3(nn.Module):
    def __init__(self, eps=1e-6, weight=None):
        super().__init__()
        self.eps = eps
        self.weight = weight

    def forward(self, logits, target):
        p = logits.sigmoid()
        inter = (p * target).sum((2, 3))
        return 1 - (2 * inter / (p.sum((2, 3)) + target.sum((2, 3)) + self.eps)).mean()

criterion = DiceLossRight3()
def epoch_right3(net, loader, opt):
    for x, y in loader:
        loss = criterion(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()


class Unet4(torch.nn.Module):
    def __init__(self, chans):
        super().__init__
        self.downs = torch.nn.ModuleList()  # expect: super-init-missing
        for a, b in zip(chans, chans[1:]):
            self.downs.append(torch.nn.Conv2d(a, b, 3, padding=1))

    def forward(self, x):
        for d in self.downs:
            x = F.relu(d(x))
        return x


class UnetRight4(torch.nn.Module):
    def __init__(self, chans):
        super().__init__()
        self.downs = torch.nn.ModuleList()
        for a, b in zip(chans, chans[1:]):
            self.downs.append(torch.nn.Conv2d(a, b, 3, padding=1))

    def forward(self, x):
        for d in self.downs:
            x = F.relu(d(x))
        return x


class Scale5(nn.Module):
    def __init__(self, n):
        self._build(n)
        super(Scale5, self).__init__()

    def _build(self, n):
        self.gain = nn.Parameter(torch.ones(n))  # expect: super-init-missing
        self.bias = nn.Parameter(torch.zeros(n))

    def forward(self, x):
        return x * self.gain + self.bias


class ScaleRight5(nn.Module):
    def __init__(self, n):
        super(ScaleRight5, self).__init__()
        self._build(n)

    def _build(self, n):
        self.gain = nn.Parameter(torch.ones(n))
        self.bias = nn.Parameter(torch.zeros(n))

    def forward(self, x):
        return x * self.gain + self.bias


class TripletNet6(nn.Module):
    def __init__(self, backbone: nn.Module, dim: int):
        self.backbone = backbone
        self.proj = nn.Linear(512, dim)  # expect: super-init-missing

    def forward(self, a, p, n):
        return tuple(self.proj(self.backbone(z)) for z in (a, p, n))


class TripletNetRight6(nn.Module):
    def __init__(self, backbone: nn.Module, dim: int):
        super().__init__()
        self.backbone = backbone
        self.proj = nn.Linear(512, dim)

    def forward(self, a, p, n):
        return tuple(self.proj(self.backbone(z)) for z in (a, p, n))


from dataclasses import dataclass
@dataclass
class Config8:
    dim: int = 8
class Mixer8(nn.Module):
    def __init__(self, config: Config8):  # expect: super-init-missing
        self.norm, self.mlp = nn.LayerNorm(config.dim), nn.Linear(config.dim, config.dim)
    def forward(self, x):
        return x + self.mlp(self.norm(x))


from dataclasses import dataclass
@dataclass
class ConfigRight8:
    dim: int = 8
class MixerRight8(nn.Module):
    def __init__(self, config: ConfigRight8):
        super().__init__()
        self.norm, self.mlp = nn.LayerNorm(config.dim), nn.Linear(config.dim, config.dim)
    def forward(self, x):
        return x + self.mlp(self.norm(x))
