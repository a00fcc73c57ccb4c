"""Marks of what a step begins with besides numbers of the model: the generators' states, the optimizer's settings."""

from __future__ import annotations

import random
import sys
import zlib
from typing import Any

from ._digest import crc

SOURCES = ("torch", "random", "numpy", "cuda")
_SETTINGS = ("lr", "momentum", "betas", "weight_decay", "eps", "alpha", "nesterov")


def states() -> list[int | None]:
    """Of the global generators of SOURCES; None for one that is not there."""
    import torch

    numpy = sys.modules.get("numpy.random")
    cuda = torch.cuda.is_initialized() and torch.cuda.is_available()
    _, key, gauss = random.getstate()
    return [
        crc(torch.default_generator.get_state()),
        hash((key, gauss or 0.0)) & 0xFFFFFFFFFFFF,
        _numpy(numpy) if numpy is not None and hasattr(numpy, "get_state") else None,
        crc(torch.cuda.get_rng_state()) if cuda and not torch.cuda.is_current_stream_capturing() else None,
    ]


def _numpy(numpy: Any) -> int:
    inner = numpy.get_state(legacy=False)["state"]
    key = inner["key"].tobytes() if "key" in inner else str(inner).encode()
    return zlib.crc32(key, int(inner.get("pos") or 0))


def hyper(optimizer: Any) -> int:
    """The numbers of the optimizer's groups that a schedule may change."""
    told = [[_plain(group.get(name)) for name in _SETTINGS] for group in optimizer.param_groups]
    return zlib.crc32(repr(told).encode())


def _plain(value: Any) -> Any:
    """A tensor that holds a rate is read on the CPU only."""
    if hasattr(value, "data_ptr"):
        return float(value) if value.device.type == "cpu" else None
    return value
