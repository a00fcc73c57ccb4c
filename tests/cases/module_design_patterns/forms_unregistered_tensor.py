"""Forms of unregistered-tensor and, beside each, the same code made right."""

import copy
import itertools
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class PosEnc1(nn.Module):
    def __init__(self, d, n=512):
        super().__init__()
        pe = torch.zeros(n, d)
        pos = torch.arange(n).unsqueeze(1)
        div = torch.exp(torch.arange(0, d, 2) * (-math.log(1e4) / d))
        pe[:, 0::2] = torch.sin(pos * div)
        pe[:, 1::2] = torch.cos(pos * div)
        self.pe = pe.unsqueeze(0)  # expect: unregistered-tensor
    def forward(self, x):
        return x + self.pe[:, :x.size(1)]


class PosEncRight1(nn.Module):
    def __init__(self, d, n=512):
        super().__init__()
        pe = torch.zeros(n, d)
        pos = torch.arange(n).unsqueeze(1)
        div = torch.exp(torch.arange(0, d, 2) * (-math.log(1e4) / d))
        pe[:, 0::2] = torch.sin(pos * div)
        pe[:, 1::2] = torch.cos(pos * div)
        self.register_buffer("pe", pe.unsqueeze(0))
    def forward(self, x):
        return x + self.pe[:, :x.size(1)]


class Sobel2(nn.Module):
    def __init__(self):
        super().__init__()
        k = torch.tensor([[1., 0., -1.], [2., 0., -2.], [1., 0., -1.]])
        self.kx = k.view(1, 1, 3, 3)  # expect: unregistered-tensor
    def forward(self, img):
        return F.conv2d(img, self.kx, padding=1)


class SobelRight2(nn.Module):
    def __init__(self):
        super().__init__()
        k = torch.tensor([[1., 0., -1.], [2., 0., -2.], [1., 0., -1.]])
        self.register_buffer("kx", k.view(1, 1, 3, 3))
    def forward(self, img):
        return F.conv2d(img, self.kx, padding=1)


class NormalizeInput3(nn.Module):
    def __init__(self, net, mean, std):
        super().__init__()
        self.net = net
        self.mean = torch.tensor(mean).view(1, 3, 1, 1)  # expect: unregistered-tensor
        self.register_buffer("std", torch.tensor(std).view(1, 3, 1, 1))
    def forward(self, x):
        return self.net((x - self.mean) / self.std)
model = NormalizeInput3(nn.Conv2d(3, 8, 3), [0.48, 0.45, 0.4], [0.2, 0.2, 0.2]).cuda()


class NormalizeInputRight3(nn.Module):
    def __init__(self, net, mean, std):
        super().__init__()
        self.net = net
        self.register_buffer("mean", torch.tensor(mean).view(1, 3, 1, 1))
        self.register_buffer("std", torch.tensor(std).view(1, 3, 1, 1))
    def forward(self, x):
        return self.net((x - self.mean) / self.std)
model = NormalizeInputRight3(nn.Conv2d(3, 8, 3), [0.48, 0.45, 0.4], [0.2, 0.2, 0.2]).cuda()


class FocalLoss4(nn.Module):
    def __init__(self, gamma, alpha):
        super().__init__()
        self.gamma = gamma
        self.alpha = torch.tensor([alpha, 1 - alpha])  # expect: unregistered-tensor
    def forward(self, logits, y):
        ce = F.cross_entropy(logits, y, reduction="none")
        pt = torch.exp(-ce)
        a = self.alpha[y]
        return (a * (1 - pt) ** self.gamma * ce).mean()


class FocalLossRight4(nn.Module):
    def __init__(self, gamma, alpha):
        super().__init__()
        self.gamma = gamma
        self.register_buffer("alpha", torch.tensor([alpha, 1 - alpha]))
    def forward(self, logits, y):
        ce = F.cross_entropy(logits, y, reduction="none")
        pt = torch.exp(-ce)
        a = self.alpha[y]
        return (a * (1 - pt) ** self.gamma * ce).mean()


class EMAQuantizer5(nn.Module):
    def __init__(self, n, d, decay=0.99):
        super().__init__()
        self.decay = decay
        self.codebook = nn.Embedding(n, d)
        self.cluster = torch.zeros(n)  # expect: unregistered-tensor
    def forward(self, z):
        ids = torch.cdist(z, self.codebook.weight).argmin(-1)
        onehot = F.one_hot(ids, len(self.cluster)).float()
        if self.training:
            self.cluster.mul_(self.decay).add_(onehot.sum(0), alpha=1 - self.decay)
        return self.codebook(ids), ids


class EMAQuantizerRight5(nn.Module):
    def __init__(self, n, d, decay=0.99):
        super().__init__()
        self.decay = decay
        self.codebook = nn.Embedding(n, d)
        self.register_buffer("cluster", torch.zeros(n))
    def forward(self, z):
        ids = torch.cdist(z, self.codebook.weight).argmin(-1)
        onehot = F.one_hot(ids, len(self.cluster)).float()
        if self.training:
            self.cluster.mul_(self.decay).add_(onehot.sum(0), alpha=1 - self.decay)
        return self.codebook(ids), ids


class CausalAttn6(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.qkv = nn.Linear(cfg.n_embd, 3 * cfg.n_embd)
        self.n_head = cfg.n_head
        self.bias = torch.tril(torch.ones(cfg.block_size, cfg.block_size)).view(1, 1, cfg.block_size, cfg.block_size)  # expect: unregistered-tensor
    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.qkv(x).split(C, dim=2)
        q, k, v = (t.view(B, T, self.n_head, C // self.n_head).transpose(1, 2) for t in (q, k, v))
        att = (q @ k.transpose(-2, -1)) / math.sqrt(k.size(-1))
        att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
        return (F.softmax(att, dim=-1) @ v).transpose(1, 2).reshape(B, T, C)


class CausalAttnRight6(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.qkv = nn.Linear(cfg.n_embd, 3 * cfg.n_embd)
        self.n_head = cfg.n_head
        self.register_buffer("bias", torch.tril(torch.ones(cfg.block_size, cfg.block_size)).view(1, 1, cfg.block_size, cfg.block_size))
    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.qkv(x).split(C, dim=2)
        q, k, v = (t.view(B, T, self.n_head, C // self.n_head).transpose(1, 2) for t in (q, k, v))
        att = (q @ k.transpose(-2, -1)) / math.sqrt(k.size(-1))
        att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
        return (F.softmax(att, dim=-1) @ v).transpose(1, 2).reshape(B, T, C)


class YoloHead7(nn.Module):
    def __init__(self, anchors, nc):
        super().__init__()
        self.conv = nn.Conv2d(256, len(anchors) * (nc + 5), 1)
        self.anchors = torch.tensor(anchors, dtype=torch.float32)  # expect: unregistered-tensor
    def forward(self, x):
        p = self.conv(x)
        wh = p[..., 2:4].exp() * self.anchors
        return wh


class YoloHeadRight7(nn.Module):
    def __init__(self, anchors, nc):
        super().__init__()
        self.conv = nn.Conv2d(256, len(anchors) * (nc + 5), 1)
        self.register_buffer("anchors", torch.tensor(anchors, dtype=torch.float32))
    def forward(self, x):
        p = self.conv(x)
        wh = p[..., 2:4].exp() * self.anchors
        return wh


class Rope8(nn.Module):
    def __init__(self, dim, base=10000.0):
        super().__init__()
        self.inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2).float() / dim))  # expect: unregistered-tensor
    def forward(self, x, positions):
        freqs = torch.einsum("i,j->ij", positions.float(), self.inv_freq)
        return x * freqs.cos() + x.roll(1, -1) * freqs.sin()


class RopeRight8(nn.Module):
    def __init__(self, dim, base=10000.0):
        super().__init__()
        self.register_buffer("inv_freq", 1.0 / (base ** (torch.arange(0, dim, 2).float() / dim)))
    def forward(self, x, positions):
        freqs = torch.einsum("i,j->ij", positions.float(), self.inv_freq)
        return x * freqs.cos() + x.roll(1, -1) * freqs.sin()


class WeightedBCE9(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.pos_weight = torch.ones(n) * 3  # expect: unregistered-tensor
    def forward(self, logits, y):
        return F.binary_cross_entropy_with_logits(logits, y, pos_weight=self.pos_weight)


class WeightedBCERight9(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.register_buffer("pos_weight", torch.ones(n) * 3)
    def forward(self, logits, y):
        return F.binary_cross_entropy_with_logits(logits, y, pos_weight=self.pos_weight)


class Schedule10(nn.Module):
    def __init__(self, T):
        super().__init__()
        betas = torch.linspace(1e-4, 0.02, T)
        alphas = 1 - betas
        self.net = nn.Linear(2, 2)
        self.abar = torch.cumprod(alphas, dim=0)  # expect: unregistered-tensor
    def add_noise(self, x, t, eps):
        a = self.abar[t].view(-1, 1)
        return a.sqrt() * x + (1 - a).sqrt() * eps
    def forward(self, x, t, eps):
        return F.mse_loss(self.net(self.add_noise(x, t, eps)), eps)


class ScheduleRight10(nn.Module):
    def __init__(self, T):
        super().__init__()
        betas = torch.linspace(1e-4, 0.02, T)
        alphas = 1 - betas
        self.net = nn.Linear(2, 2)
        self.register_buffer("abar", torch.cumprod(alphas, dim=0))
    def add_noise(self, x, t, eps):
        a = self.abar[t].view(-1, 1)
        return a.sqrt() * x + (1 - a).sqrt() * eps
    def forward(self, x, t, eps):
        return F.mse_loss(self.net(self.add_noise(x, t, eps)), eps)


class Query11(nn.Module):
    def __init__(self, n, d):
        super().__init__()
        self.queries = torch.randn(n, d, requires_grad=True)  # expect: unregistered-tensor
        self.attn = nn.MultiheadAttention(d, 4)
    def forward(self, mem):
        q = self.queries.unsqueeze(1).expand(-1, mem.size(1), -1)
        return self.attn(q, mem, mem)[0]


class QueryRight11(nn.Module):
    def __init__(self, n, d):
        super().__init__()
        self.queries = nn.Parameter(torch.randn(n, d))
        self.attn = nn.MultiheadAttention(d, 4)
    def forward(self, mem):
        q = self.queries.unsqueeze(1).expand(-1, mem.size(1), -1)
        return self.attn(q, mem, mem)[0]


MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
class Perceptual12(nn.Module):
    def __init__(self, vgg):
        super().__init__()
        self.vgg = vgg
        self.mean = torch.tensor(MEAN)[None, :, None, None]  # expect: unregistered-tensor
    def forward(self, x, y):
        return F.l1_loss(self.vgg(x - self.mean), self.vgg(y - self.mean))


MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
class PerceptualRight12(nn.Module):
    def __init__(self, vgg):
        super().__init__()
        self.vgg = vgg
        self.register_buffer("mean", torch.tensor(MEAN)[None, :, None, None])
    def forward(self, x, y):
        return F.l1_loss(self.vgg(x - self.mean), self.vgg(y - self.mean))


import numpy as np
class Mel13(nn.Module):
    def __init__(self, fb: np.ndarray):
        super().__init__()
        self.fb = torch.from_numpy(fb).float()  # expect: unregistered-tensor
    def forward(self, spec):
        return torch.matmul(self.fb, spec).clamp_min(1e-5).log()


import numpy as np
class MelRight13(nn.Module):
    def __init__(self, fb: np.ndarray):
        super().__init__()
        self.register_buffer("fb", torch.from_numpy(fb).float())
    def forward(self, spec):
        return torch.matmul(self.fb, spec).clamp_min(1e-5).log()
