"""A complete mixed-precision training loop: accumulation, unscale, clip, step, update, schedule, save and resume.

Prints one line for each step: loss, loss scale, gradient norm after unscale_, learning rate, and whether the step was
skipped; then that a resumed run has the same scale. Copy `train`; everything else makes it a program.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

FORMATS = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32}


@dataclass
class State:
    """All that a resume needs of a mixed-precision run, data position and random states aside."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    scheduler: Any
    scaler: Any

    def state_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name).state_dict() for name in ("model", "optimizer", "scheduler", "scaler")}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        for name, state in saved.items():
            getattr(self, name).load_state_dict(state)


def chosen(device: str) -> str:
    """The format for DEVICE: bf16 where it has units for it, fp16 on older GPUs, fp32 on other devices."""
    if device == "cuda":
        return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp16"
    return "bf16" if device == "cpu" else "fp32"


def build(device: str, fmt: str) -> State:
    model = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 10)).to(device)  # fp32: autocast casts
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.1, total_iters=5)
    return State(model, optimizer, scheduler, torch.amp.GradScaler(device, enabled=fmt == "fp16"))


def train(state: State, batches: list[Any], device: str, fmt: str, every: int, max_norm: float) -> None:
    for index, batch in enumerate(batches, start=1):
        inputs, targets = (each.to(device) for each in batch)
        with torch.autocast(device, dtype=FORMATS[fmt], enabled=fmt != "fp32"):
            loss = nn.functional.cross_entropy(state.model(inputs), targets) / every  # mean over the accumulation
        state.scaler.scale(loss).backward()  # outside of the region
        if index % every:
            continue
        state.scaler.unscale_(state.optimizer)  # once per optimizer and step, before anything reads gradients
        norm = nn.utils.clip_grad_norm_(state.model.parameters(), max_norm)
        before = state.scaler.get_scale()
        state.scaler.step(state.optimizer)  # leaves the step out when a gradient is not finite
        state.scaler.update()
        state.optimizer.zero_grad()
        skipped = state.scaler.get_scale() < before
        if not skipped:
            state.scheduler.step()
        rate = state.scheduler.get_last_lr()[0]
        print(
            f"step {index // every}: loss {loss.item() * every:.3f} scale {before:g} norm {norm:.3f} lr {rate:.4f}"
            f"{' skipped' if skipped else ''}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--format", choices=("auto", *FORMATS), default="auto", help="auto: what the device is good at")
    parser.add_argument("--steps", type=int, default=6, help="optimizer steps")
    parser.add_argument("--accumulate", type=int, default=2, help="batches for each step")
    parser.add_argument("--max-norm", type=float, default=1.0, help="limit of the true gradient norm")
    given = parser.parse_args()
    fmt = chosen(given.device) if given.format == "auto" else given.format
    torch.manual_seed(0)
    batches = [(torch.randn(16, 32), torch.randint(10, (16,))) for _ in range(given.steps * given.accumulate)]
    state = build(given.device, fmt)
    print(f"{fmt} on {given.device}, scaler {'on' if state.scaler.is_enabled() else 'off'}")
    train(state, batches, given.device, fmt, given.accumulate, given.max_norm)
    with tempfile.TemporaryDirectory() as folder:
        torch.save(state.state_dict(), path := Path(folder, "last.pt"))
        resumed = build(given.device, fmt)
        resumed.load_state_dict(torch.load(path, map_location="cpu"))
    print(f"resumed: scale {resumed.scaler.get_scale():g}, lr {resumed.scheduler.get_last_lr()[0]:.4f}")


if __name__ == "__main__":
    main()
