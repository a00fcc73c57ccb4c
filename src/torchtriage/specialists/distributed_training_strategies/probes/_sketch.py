"""A sketch of the samples of one pass over a loader: the same for the same samples, in whatever order they came."""

from __future__ import annotations

from typing import Any

KEPT = 128  # the smallest marks: of two passes over the same samples they are the same (bottom-k sketch)
VALUES = 64  # of each sample, that its mark is made of
_VIEWS = {1: "int8", 2: "int16", 4: "int32", 8: "int64"}
_SPREAD, _MIX = 0x9E3779B97F4A7C15 - (1 << 64), 0x94D049BB133111EB - (1 << 64)  # splitmix64's


class Sketch:
    """samples: that were given so far. batches: those they came in. off: they cannot be told apart, or are too many."""

    LONGEST = 4096  # batches of a pass; in a longer one nobody looks on

    def __init__(self) -> None:
        self.samples = self.batches = 0
        self.off = False
        self.kept: Any = None
        self._weights: Any = None

    def add(self, batch: Any) -> None:
        if self.off:
            return
        first = _first(batch)
        if first is None or self.batches >= self.LONGEST:
            self.off, self.kept = True, None
            return
        import torch

        marks = self._marks(first)
        joined = marks if self.kept is None else torch.cat([self.kept, marks])
        self.kept = torch.unique(joined)[:KEPT]  # sorted
        self.samples, self.batches = self.samples + int(first.shape[0]), self.batches + 1

    def _marks(self, tensor: Any) -> Any:
        """One for each sample, from 0 to 2**62, evenly spread."""
        import torch

        flat = tensor.detach().reshape(tensor.shape[0], -1)[:, :VALUES].contiguous()
        if flat.dtype.is_complex:
            flat = torch.view_as_real(flat).reshape(len(flat), -1)
        elif flat.dtype == torch.bool:
            flat = flat.to(torch.int8)
        bits = flat.view(getattr(torch, _VIEWS[flat.element_size()])).to(torch.int64)
        if self._weights is None or len(self._weights) != bits.shape[1]:
            numbers = torch.arange(1, bits.shape[1] + 1, dtype=torch.int64)
            self._weights = _mixed(numbers) | 1
        return _mixed((_mixed(bits) * self._weights).sum(1)) & ((1 << 62) - 1)

    def marks(self) -> list[int]:
        """The smallest, in order."""
        return [] if self.off or self.kept is None else [int(each) for each in self.kept.tolist()]


def _mixed(numbers: Any) -> Any:
    mixed = (numbers + _SPREAD) * _MIX
    mixed = (mixed ^ ((mixed >> 29) & ((1 << 35) - 1))) * _SPREAD
    return mixed ^ ((mixed >> 32) & ((1 << 32) - 1))


def _first(batch: Any, depth: int = 3) -> Any:
    """The first tensor in a batch that holds a row for each sample."""
    import torch

    if isinstance(batch, torch.Tensor):
        plain = type(batch) is torch.Tensor and batch.device.type == "cpu" and batch.layout is torch.strided
        return batch if plain and batch.dim() > 1 and batch.shape[0] and batch[0].numel() else None
    if depth and isinstance(batch, (dict, tuple, list)):
        parts = (_first(each, depth - 1) for each in (batch.values() if isinstance(batch, dict) else batch))
        return next((each for each in parts if each is not None), None)
    return None
