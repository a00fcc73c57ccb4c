"""Seeds for all that a run draws from."""

from __future__ import annotations

import operator
import os
import random
import sys
from typing import Any

from torchtriage.core.errors import TriageError

CUBLAS = "CUBLAS_WORKSPACE_CONFIG"
OWNERS = ("sampler", "batch_sampler")


def seed_everything(seed: int, *others: Any, deterministic: bool = False) -> list[str]:
    """Seeds Python, NumPy, torch on all devices, and the generators of OTHERS; returns what was seeded.

    seed: 0 to 2³²-1, as NumPy takes it.
    others: loaders, samplers, or generators of torch, NumPy or Python; each gets a seed of its own that follows from
        SEED and its place. Workers need none: a loader seeds them from its generator, or else from torch's.
    deterministic: torch takes deterministic kernels only, and raises where an operation has none.

    Raises TriageError for a seed that is too large, for what cannot be seeded, and where deterministic comes too late.
    """
    import torch

    try:
        seed = operator.index(seed)
    except TypeError:
        do = "Take a number of 0 to 2**32 - 1."
        raise TriageError(f"the seed {seed!r} is no whole number", "seed_everything", do) from None
    if not 0 <= seed < 2**32:
        raise TriageError(f"the seed {seed} is not within 0 and 2**32 - 1", "seed_everything", "Take a smaller one.")
    if deterministic:
        _deterministic()
    random.seed(seed)
    torch.manual_seed(seed)
    seeded = ["python", "torch"]
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed)
        seeded.append("numpy")
    done: set[int] = set()
    for number, each in enumerate(others, start=1):
        own = (seed + number * 0x9E3779B1) % 2**32
        found = _generators(each)
        if not found:
            do = "Give it a generator, or leave it out: without one it draws from torch's, which is seeded."
            raise TriageError(
                f"argument {number}, a {type(each).__qualname__}, has no generator", "seed_everything", do
            )
        for generator in found:
            if id(generator) not in done:
                _seed(generator, own)
                done.add(id(generator))
        seeded.append(type(each).__qualname__)
    return seeded


def _generators(value: Any) -> list[Any]:
    """VALUE, if it is a generator, or those of a loader and of what gives it its indices."""
    from torchtriage.toolkit.state.generators import is_generator

    if is_generator(value):
        return [value]
    inner = [getattr(value, name, None) for name in ("generator", *OWNERS)]
    return [each for part in inner if part is not None for each in _generators(part)]


def _seed(generator: Any, seed: int) -> None:
    if hasattr(generator, "manual_seed"):
        generator.manual_seed(seed)
    elif hasattr(generator, "bit_generator"):
        generator.bit_generator.state = type(generator.bit_generator)(seed).state
    else:
        generator.seed(seed)


def _deterministic() -> None:
    import torch

    if torch.cuda.is_initialized() and CUBLAS not in os.environ:
        do = f"Call it before anything goes to a device, or set {CUBLAS}=:4096:8 in the shell."
        raise TriageError("deterministic=True comes after the first use of CUDA", "seed_everything", do)
    os.environ.setdefault(CUBLAS, ":4096:8")
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False
