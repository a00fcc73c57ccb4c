"""Tensors as bytes, and marks of them: sensitive to order and sign, the same in every process."""

from __future__ import annotations

import ctypes
import hashlib
from typing import Any

_ROWS = 512  # samples of a batch that get marks of their own


def plain(tensor: Any) -> Any:
    """TENSOR on the CPU, dense and contiguous; of a sharded one, what this rank holds. One without storage as it is."""
    import torch

    found = getattr(tensor.detach(), "_local_tensor", tensor.detach())
    if found.device.type == "meta":  # of a model that is not filled yet, or kept to know its shapes
        return found
    if found.layout != torch.strided:
        found = found.to_dense()
    if found.is_quantized:
        found = found.int_repr()
    return found.resolve_conj().resolve_neg().cpu().contiguous()


def raw(tensor: Any) -> bytes:
    """The numbers of TENSOR, which is `plain`; none of one that has no storage (meta, fake)."""
    size = tensor.numel() * tensor.element_size()
    if not size or tensor.device.type == "meta":
        return b""
    return ctypes.string_at(tensor.data_ptr(), size)


def mark(*pieces: bytes) -> str:
    found = hashlib.blake2b(digest_size=12)
    for piece in pieces:
        found.update(piece)
    return found.hexdigest()


def mark_of(tensors: Any) -> str:
    """One mark of many tensors, in their order."""
    found = hashlib.blake2b(digest_size=12)
    for tensor in tensors:
        each = plain(tensor)
        found.update(f"{each.dtype}{tuple(each.shape)}".encode())
        found.update(raw(each))
    return found.hexdigest()


def rows(batch: Any) -> list[str]:
    """A mark for each sample of the first tensor in BATCH that has several."""
    for tensor in tensors_in(batch):
        if tensor.dim() and 1 <= tensor.shape[0] <= _ROWS:
            each = plain(tensor)
            size = each.numel() * each.element_size() // each.shape[0]
            data = raw(each)
            return [mark(data[at : at + size])[:12] for at in range(0, len(data), size)] if size and data else []
    return []


def tensors_in(value: Any, depth: int = 4) -> list[Any]:
    """The tensors in lists, tuples and dictionaries, in order."""
    import torch

    if isinstance(value, torch.Tensor):
        return [value]
    if not depth:
        return []
    inner = value.values() if hasattr(value, "values") and hasattr(value, "keys") else value
    if isinstance(value, (list, tuple, dict)) or inner is not value:
        return [found for each in list(inner)[:1000] for found in tensors_in(each, depth - 1)]
    return []
