"""Marks of a batch: numbers that are equal when the values that came first in it are."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

VALUES = 64  # of a tensor, that are looked at
PARTS = 16  # of a list or dictionary
PLAIN = (str, bytes, int, float)


def marks(batch: Any, name: str = "", depth: int = 3) -> Iterator[tuple[str, int, int]]:
    """Of each tensor and plain value in a batch, on the CPU: its way there, a mark, and how many values that holds."""
    import torch

    if isinstance(batch, torch.Tensor):
        if type(batch) is torch.Tensor and batch.device.type == "cpu" and batch.layout is torch.strided:
            first = batch.detach().reshape(-1)[:VALUES].tolist()
            yield name, mark(first), len(first)
    elif isinstance(batch, PLAIN):
        yield name, mark(batch), 1
    elif type(batch).__module__ == "numpy" and hasattr(batch, "ravel"):
        first = batch.ravel()[:VALUES].tolist()
        yield name, mark(first), len(first)
    elif depth and isinstance(batch, (dict, tuple, list)):
        for key, each in list(batch.items() if isinstance(batch, dict) else enumerate(batch))[:PARTS]:
            yield from marks(each, f"{name}.{key}", depth - 1)


def mark(value: Any) -> int:
    """The same for values that read the same, in this process and in others."""
    return zlib.crc32(repr(value).encode())
