import math

import torch
from torch import nn
from torch.optim import AdamW, Optimizer
from torch.optim.lr_scheduler import LambdaLR


def split_parameters(model: nn.Module) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """Parameters with and without weight decay: matrices have it; scales and biases do not."""
    with_decay, without_decay = [], []
    for parameter in model.parameters():
        if not parameter.requires_grad:
            continue
        (with_decay if parameter.ndim > 1 else without_decay).append(parameter)
    return with_decay, without_decay


def create_optimizer(model: nn.Module, lr: float, weight_decay: float) -> Optimizer:
    with_decay, without_decay = split_parameters(model)
    groups = [
        {"params": with_decay, "weight_decay": weight_decay},
        {"params": without_decay, "weight_decay": 0.0},
    ]
    return AdamW(groups, lr=lr, betas=(0.9, 0.95))


def create_schedule(optimizer: Optimizer, warmup_updates: int, total_updates: int, floor: float = 0.02) -> LambdaLR:
    """Linear warm-up, then a cosine down to ``floor`` times the full rate."""

    def factor(update: int) -> float:
        if update < warmup_updates:
            return (update + 1) / (warmup_updates + 1)
        done = (update - warmup_updates) / max(1, total_updates - warmup_updates)
        return floor + (1.0 - floor) * 0.5 * (1.0 + math.cos(math.pi * min(1.0, done)))

    return LambdaLR(optimizer, factor)


def gradient_norm_clipped(model: nn.Module, limit: float) -> torch.Tensor:
    return nn.utils.clip_grad_norm_(model.parameters(), max_norm=limit)
