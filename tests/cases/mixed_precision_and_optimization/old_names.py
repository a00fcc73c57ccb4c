"""Names of torch.cuda.amp and torch.cpu.amp, and code that has moved on or allows for an older torch."""

import torch
import torch.cuda.amp as amp
import torch.nn.functional as F
from torch import nn, optim
from torch.cuda.amp import GradScaler as Scaler
from torch.cuda.amp import autocast, custom_bwd, custom_fwd


def train(model: nn.Module, loader, optimizer: optim.Optimizer, use_amp: bool):
    scaler = Scaler(2.0**14, enabled=use_amp)  # expect: amp-api-deprecated
    for x, y in loader:
        optimizer.zero_grad()
        with autocast(use_amp):  # expect: amp-api-deprecated
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


@torch.no_grad()
def evaluate(model: nn.Module, loader):
    model.eval()
    with torch.cuda.amp.autocast(enabled=True, dtype=torch.bfloat16):  # expect: amp-api-deprecated
        return sum((model(x).argmax(1) == y).sum() for x, y in loader)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    @amp.autocast()  # expect: amp-api-deprecated
    def forward(self, x):
        return self.layer(x)


class Double(torch.autograd.Function):
    @staticmethod
    @custom_fwd  # expect: amp-api-deprecated
    def forward(ctx, x):
        return x * 2

    @staticmethod
    @custom_bwd  # expect: amp-api-deprecated
    def backward(ctx, grad):
        return grad * 2


class Triple(torch.autograd.Function):
    @staticmethod
    @torch.cuda.amp.custom_fwd(cast_inputs=torch.float32)  # expect: amp-api-deprecated
    def forward(ctx, x):
        return x * 3

    @staticmethod
    @torch.amp.custom_bwd(device_type="cuda")
    def backward(ctx, grad):
        return grad * 3


def on_the_cpu(model, x):
    with torch.cpu.amp.autocast():  # expect: amp-api-deprecated
        return model(x)


# Look-alikes


def moved_on(model: nn.Module, loader, optimizer: optim.Optimizer):
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda"), torch.autograd.profiler.record_function("forward"):
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


def for_any_version(device: str):
    try:
        scaler = torch.amp.GradScaler(device)
    except (AttributeError, TypeError):
        scaler = torch.cuda.amp.GradScaler()
    return scaler


def by_version(torch_version):
    if torch_version >= (2, 3):
        return torch.amp.GradScaler("cuda")
    else:
        return torch.cuda.amp.GradScaler()


def by_feature():
    return torch.amp.GradScaler("cuda") if hasattr(torch.amp, "GradScaler") else None


def by_version_in_one_line(device):
    return torch.amp.GradScaler(device) if torch.__version__ >= "2.3" else torch.cuda.amp.GradScaler()


def annotated(scaler: torch.cuda.amp.GradScaler | None = None) -> bool:
    return isinstance(scaler, torch.cuda.amp.GradScaler)
