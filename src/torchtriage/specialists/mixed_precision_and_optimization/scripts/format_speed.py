"""Whether a lower precision pays for a model on this device: time of a training step and peak memory in each format.

Prints for each format the median time of a step after warm-up, the slowest and fastest of the steps, its ratio to
float32, and on CUDA the peak of memory. Put your model and a real batch into `build`. Differences within the spread
mean nothing.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import torch
from torch import nn

FORMATS = {"fp32": None, "tf32": None, "bf16": torch.bfloat16, "fp16": torch.float16}


def build(width: int, batch: int, device: str) -> tuple[nn.Module, Any]:
    """The model and one batch of inputs: exchange both for yours."""
    layers = (nn.Linear(width, width), nn.GELU(), nn.Linear(width, width))
    return nn.Sequential(*layers).to(device), torch.randn(batch, width, device=device)


def seconds(fmt: str, given: argparse.Namespace) -> list[float]:
    """The time of each step in format FMT, the device waited for."""
    torch.set_float32_matmul_precision("high" if fmt == "tf32" else "highest")
    model, inputs = build(given.width, given.batch, given.device)
    optimizer = torch.optim.AdamW(model.parameters())
    scaler = torch.amp.GradScaler(given.device, enabled=fmt == "fp16")
    dtype, taken = FORMATS[fmt], []
    for index in range(given.warmup + given.steps):
        begin = time.perf_counter()
        optimizer.zero_grad()
        with torch.autocast(given.device, dtype=dtype, enabled=dtype is not None):
            loss = model(inputs).float().square().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        if given.device == "cuda":
            torch.cuda.synchronize()
        if index >= given.warmup:
            taken.append(time.perf_counter() - begin)
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--warmup", type=int, default=3, help="steps that do not count")
    parser.add_argument("--steps", type=int, default=10)
    given = parser.parse_args()
    reference = 0.0
    for fmt in FORMATS if given.device == "cuda" else ("fp32", "bf16"):
        if given.device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        taken = seconds(fmt, given)
        median = statistics.median(taken)
        reference = reference or median
        peak = f", peak {torch.cuda.max_memory_allocated() / 2**20:.0f} MiB" if given.device == "cuda" else ""
        spread = f"{min(taken) * 1e3:.2f} to {max(taken) * 1e3:.2f}"
        print(f"{fmt}: {median * 1e3:.2f} ms ({spread}), {median / reference:.2f} of fp32{peak}")


if __name__ == "__main__":
    main()
