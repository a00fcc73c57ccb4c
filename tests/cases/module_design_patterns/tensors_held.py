"""Tensors in modules: some are left behind when the module moves, some only look like it."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class SinusoidalPositions(nn.Module):
    def __init__(self, d_model, dropout=0.1, max_len=5000):
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        pe = torch.zeros(max_len, d_model)
        position = torch.arange(0, max_len).unsqueeze(1).float()
        div_term = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(10000.0) / d_model))
        pe[:, 0::2] = torch.sin(position * div_term)
        pe[:, 1::2] = torch.cos(position * div_term)
        self.pe = pe.unsqueeze(0)  # expect: unregistered-tensor

    def forward(self, x):
        return self.dropout(x + self.pe[:, : x.size(1)])


class CausalAttention(nn.Module):
    def __init__(self, width, heads, block_size):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.mask = torch.tril(torch.ones(block_size, block_size)).view(1, 1, block_size, block_size)  # expect: unregistered-tensor

    def attend(self, q, k, v):
        n = q.size(-2)
        att = (q @ k.transpose(-2, -1)) / math.sqrt(k.size(-1))
        att = att.masked_fill(self.mask[:, :, :n, :n] == 0, float("-inf"))
        return F.softmax(att, dim=-1) @ v

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        return self.attend(q, k, v)


class WeightedLoss(nn.Module):
    def __init__(self):
        super(WeightedLoss, self).__init__()
        self.class_weights = torch.tensor([0.2, 0.3, 0.5])  # expect: unregistered-tensor

    def forward(self, logits, targets):
        return F.cross_entropy(logits, targets, weight=self.class_weights)


class Prototypes(nn.Module):
    def __init__(self, classes, width):
        super().__init__()
        self.encoder = nn.Linear(width, width)
        self.prototypes = torch.randn(classes, width, requires_grad=True)  # expect: unregistered-tensor

    def forward(self, x):
        return torch.cdist(self.encoder(x), self.prototypes)


class Normalised(nn.Module):
    def __init__(self, backbone):
        super().__init__()
        self.backbone = backbone
        self.mean = torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1)  # expect: unregistered-tensor
        self.std = torch.tensor([0.229, 0.224, 0.225]).view(1, 3, 1, 1)  # expect: unregistered-tensor

    def forward(self, image):
        return self.backbone((image - self.mean) / self.std)


class Rotary(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.inv_freq = 1.0 / (10000 ** (torch.arange(0, dim, 2).float() / dim))  # expect: unregistered-tensor

    def forward(self, t):
        return torch.einsum("i,j->ij", t, self.inv_freq)


class Registered(nn.Module):
    def __init__(self, width):
        super().__init__()
        table = torch.zeros(512, width)
        self.register_buffer("table", table)
        self.register_buffer("steps", torch.arange(512))
        self.scale = nn.Parameter(torch.ones(width))
        self.raw = torch.randn(width)
        self.shift = nn.Parameter(self.raw)

    def forward(self, x):
        return (x + self.table[: x.size(1)]) * self.scale + self.raw


class MovedInForward(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.basis = torch.eye(width)
        self.window = torch.hann_window(width)
        self.other = torch.ones(width)
        self.late = torch.ones(width)

    def forward(self, x):
        basis = self.basis[: x.size(-1)]
        basis = basis.to(x.device)
        if self.late.device != x.device:
            self.late.data = self.late.data.cuda()
        return x @ basis + self.window.type_as(x) + self.other.to(x) + self.late * x


class OnItsDevice(nn.Module):
    def __init__(self, width, device):
        super().__init__()
        self.offsets = torch.arange(width, device=device)
        self.scales = torch.ones(width).to(device)
        self.hard = torch.ones(width).cuda()

    def forward(self, x):
        return x * self.scales + self.offsets + self.hard


class MovesItself(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.grid = torch.linspace(0, 1, width)

    def _apply(self, fn):
        self.grid = fn(self.grid)
        return super()._apply(fn)

    def forward(self, x):
        return x + self.grid


class Remembers(nn.Module):
    """State that forward replaces is no buffer by intention."""

    def __init__(self, width):
        super().__init__()
        self.cell = nn.GRUCell(width, width)
        self.hidden = torch.zeros(1, width)

    def forward(self, x):
        self.hidden = self.cell(x, self.hidden)
        return self.hidden


class OnlyLooked(nn.Module):
    """Shapes, numbers and indices work from the CPU, and so does a tensor without dimensions."""

    def __init__(self, sizes):
        super().__init__()
        self.sizes = torch.tensor([1, 2, 3])
        self.order = torch.arange(4)
        self.temperature = torch.tensor(0.07)
        self.levels = torch.linspace(0.1, 0.9, 5)

    def forward(self, x):
        for level in self.levels.tolist():
            x = x * level
        return x[:, self.order] / self.temperature + self.sizes.numel() + self.sizes.shape[0] + len(self.sizes)


class Placed(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.prior = torch.ones(width)

    def forward(self, x):
        return x * self.prior


def build(width, device):
    model = Placed(width).to(device)
    model.prior = model.prior.to(device)
    return model


class Dataset:
    def __init__(self):
        self.mean = torch.tensor([0.5, 0.5])

    def __getitem__(self, index):
        return self.mean * index
