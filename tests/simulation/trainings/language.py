"""A small GPT with autocast, a gradient scaler, accumulation, an exponential average of its weights and a checkpoint."""

from __future__ import annotations

import io
import math

import torch
from torch import nn

VOCABULARY, LENGTH, WIDTH, HEADS = 32, 16, 32, 4


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inputs = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.outputs = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        batch, length, _ = tokens.shape
        parts = self.inputs(tokens).view(batch, length, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(*parts, is_causal=True)
        return self.outputs(mixed.transpose(1, 2).reshape(batch, length, WIDTH))


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention, self.norms = Attention(), nn.ModuleList([nn.LayerNorm(WIDTH), nn.RMSNorm(WIDTH)])
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH), nn.Dropout(0.1))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        tokens = tokens + self.attention(self.norms[0](tokens))
        return tokens + self.mlp(self.norms[1](tokens))


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.layers = nn.ModuleList([Layer(), Layer()])
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, tokens: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        hidden = self.tokens(tokens) + self.places(torch.arange(tokens.size(1), device=tokens.device))
        for layer in self.layers:
            hidden = torch.utils.checkpoint.checkpoint(layer, hidden, use_reentrant=False)
        return nn.functional.cross_entropy(self.head(hidden).flatten(0, 1), targets.flatten(), ignore_index=-1)


def batches(count: int) -> list[torch.Tensor]:
    source = torch.Generator().manual_seed(0)
    steps = torch.randint(1, 4, (count, 4, 1), generator=source)
    return list((torch.arange(LENGTH + 1) * steps + steps) % VOCABULARY)


def groups(model: nn.Module) -> list[dict[str, object]]:
    matrices = [each for each in model.parameters() if each.dim() > 1]
    others = [each for each in model.parameters() if each.dim() < 2]
    return [{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]


def train(device: str, dtype: torch.dtype = torch.float16, steps: int = 6, accumulation: int = 2) -> list[float]:
    torch.manual_seed(0)
    model = Model().to(device)
    average = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))
    optimizer = torch.optim.AdamW(groups(model), lr=1e-2, betas=(0.9, 0.95), fused=device != "cpu")
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.5 * (1 + math.cos(math.pi * step / steps)))
    scaler = torch.amp.GradScaler(device, enabled=dtype is torch.float16)
    losses = []
    parts = iter(batches(steps * accumulation))
    for _ in range(steps):
        total = torch.zeros((), device=device)
        for _ in range(accumulation):
            tokens = next(parts).to(device, non_blocking=True)
            with torch.autocast(device, dtype=dtype):
                loss = model(tokens[:, :-1], tokens[:, 1:]) / accumulation
            scaler.scale(loss).backward()
            total += loss.detach()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        schedule.step()
        average.update_parameters(model)
        losses.append(total.item())
    restore(model, optimizer, scaler)
    return losses


def restore(model: nn.Module, optimizer: torch.optim.Optimizer, scaler: torch.amp.GradScaler) -> None:
    """Saves and loads all of it, as a job does that is taken up again."""
    file = io.BytesIO()
    parts = {"model": model, "optimizer": optimizer, "scaler": scaler}
    torch.save({name: each.state_dict() for name, each in parts.items()}, file)
    file.seek(0)
    read = torch.load(file)
    for name, each in parts.items():
        each.load_state_dict(read[name])
