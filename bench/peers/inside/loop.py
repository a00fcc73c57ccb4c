"""The loop of bench/overhead.py alone, for tools that must start the process: prints CPU seconds of the median step.

python loop.py small|tiny|shallow|transformer|deep STEPS
"""

from __future__ import annotations

import statistics
import sys
from time import process_time

import torch


def tiny() -> tuple[torch.nn.Module, torch.Tensor]:
    """100 parameter tensors in a step of a millisecond or two: the worst case for any fixed cost."""
    layers = [layer for _ in range(50) for layer in (torch.nn.Linear(16, 16), torch.nn.ReLU())]
    return torch.nn.Sequential(*layers, torch.nn.Linear(16, 4, bias=False)), torch.randn(16, 16)


def small() -> tuple[torch.nn.Module, torch.Tensor]:
    """12 parameter tensors in a step of about a millisecond."""
    layers = [layer for _ in range(5) for layer in (torch.nn.Linear(128, 128), torch.nn.ReLU())]
    return torch.nn.Sequential(*layers, torch.nn.Linear(128, 4)), torch.randn(64, 128)


def transformer() -> tuple[torch.nn.Module, torch.Tensor]:
    """4 layers of width 128, 0.8 million parameters: a step of some ten milliseconds."""
    layer = torch.nn.TransformerEncoderLayer(128, 4, 512, batch_first=True)
    return torch.nn.Sequential(torch.nn.TransformerEncoder(layer, 4), torch.nn.Linear(128, 4)), torch.randn(8, 32, 128)


def shallow() -> tuple[torch.nn.Module, torch.Tensor]:
    """2 layers of width 128, for half as many rows: a step of about ten milliseconds."""
    layer = torch.nn.TransformerEncoderLayer(128, 4, 512, batch_first=True)
    return torch.nn.Sequential(torch.nn.TransformerEncoder(layer, 2), torch.nn.Linear(128, 4)), torch.randn(4, 32, 128)


def deep() -> tuple[torch.nn.Module, torch.Tensor]:
    """6 layers of width 192: a step of some fifty milliseconds."""
    layer = torch.nn.TransformerEncoderLayer(192, 4, 768, batch_first=True)
    return torch.nn.Sequential(torch.nn.TransformerEncoder(layer, 6), torch.nn.Linear(192, 4)), torch.randn(8, 24, 192)


MODELS = {make.__name__: make for make in (small, tiny, shallow, transformer, deep)}


def median_step(name: str, steps: int) -> float:
    """CPU seconds of all threads of the process, its first fifth of steps left out."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model, sample = MODELS[name]()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    times: list[float] = []
    for _ in range(steps // 2):
        began = process_time()
        for batch in torch.utils.data.DataLoader(torch.cat((sample, sample)), batch_size=len(sample)):
            optimizer.zero_grad()
            model(batch).square().mean().backward()
            optimizer.step()
        times.append((process_time() - began) / 2)
    return statistics.median(times[len(times) // 5 :])


if __name__ == "__main__":
    print("seconds", median_step(sys.argv[1], int(sys.argv[2])))
