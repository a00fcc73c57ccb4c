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
    def __init__(self, width):  # expect: super-init-missing
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
        self.backbone = backbone  # expect: super-init-missing
        self.proj = nn.Linear(512, dim)

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
    def __init__(self, config: Config8):
        self.norm, self.mlp = nn.LayerNorm(config.dim), nn.Linear(config.dim, config.dim)  # expect: super-init-missing
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


class ConvBNAct9(nn.Sequential):
    def __init__(self, i, o):
        self.add_module("conv", nn.Conv2d(i, o, 3, padding=1, bias=False))  # expect: super-init-missing
        self.add_module("bn", nn.BatchNorm2d(o))


class ConvBNActRight9(nn.Sequential):
    def __init__(self, i, o):
        super().__init__(nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o))


class Timer10:
    def __init__(self, name):
        self.name = name
        self.total = 0.0
    def tick(self, dt):
        self.total += dt
class TimedBlock10(nn.Module, Timer10):
    def __init__(self, d):
        Timer10.__init__(self, "block")
        self.fc = nn.Linear(d, d)  # expect: super-init-missing
    def forward(self, x):
        return self.fc(x)


class TimerRight10:
    def __init__(self, name):
        self.name = name
        self.total = 0.0
    def tick(self, dt):
        self.total += dt
class TimedBlockRight10(nn.Module, TimerRight10):
    def __init__(self, d):
        nn.Module.__init__(self)
        TimerRight10.__init__(self, "block")
        self.fc = nn.Linear(d, d)
    def forward(self, x):
        return self.fc(x)


class SpeechFrontend11(nn.Module):
    """Mel features."""
    def __init__(self, n_fft=400, hop=160):
        self.n_fft, self.hop = n_fft, hop
        self.register_buffer("window", torch.hann_window(n_fft))  # expect: super-init-missing
        super(SpeechFrontend11, self).__init__()
    def forward(self, wav):
        return torch.stft(wav, self.n_fft, self.hop, window=self.window, return_complex=True).abs()


class SpeechFrontendRight11(nn.Module):
    """Mel features."""
    def __init__(self, n_fft=400, hop=160):
        self.n_fft, self.hop = n_fft, hop
        super(SpeechFrontendRight11, self).__init__()
        self.register_buffer("window", torch.hann_window(n_fft))
    def forward(self, wav):
        return torch.stft(wav, self.n_fft, self.hop, window=self.window, return_complex=True).abs()


class GNNLayer12(nn.Module):
    def __init__(self, in_dim, out_dim, act=None, **kwargs):
        self.act = act or nn.ReLU()  # expect: super-init-missing
        self.lin = nn.Linear(in_dim, out_dim, bias=kwargs.get("bias", True))
    def forward(self, x, adj):
        return self.act(adj @ self.lin(x))


class GNNLayerRight12(nn.Module):
    def __init__(self, in_dim, out_dim, act=None, **kwargs):
        if act is None:
            act = nn.ReLU()
        super().__init__()
        self.act = act
        self.lin = nn.Linear(in_dim, out_dim, bias=kwargs.get("bias", True))
    def forward(self, x, adj):
        return self.act(adj @ self.lin(x))


class Attn13(nn.Module):
    def __init__(self, dim):
        self.scale: float = dim ** -0.5
        self.qkv: nn.Module = nn.Linear(dim, 3 * dim)  # expect: super-init-missing
    def forward(self, x):
        return self.qkv(x) * self.scale


class AttnRight13(nn.Module):
    def __init__(self, dim):
        self.scale: float = dim ** -0.5
        super().__init__()
        self.qkv: nn.Module = nn.Linear(dim, 3 * dim)
    def forward(self, x):
        return self.qkv(x) * self.scale


def make14(dim):
    class Inner(nn.Module):
        def __init__(self):
            self.fc = nn.Linear(dim, dim)  # expect: super-init-missing
        def forward(self, x):
            return self.fc(x)
    return Inner()


def make_right14(dim):
    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(dim, dim)
        def forward(self, x):
            return self.fc(x)
    return Inner()
