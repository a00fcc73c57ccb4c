"""Tensors as they lie in memory, by name: what a save writes, with nothing copied that need not be."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from torchtriage.core.errors import TriageError

CODES = {
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "int16": "I16",
    "uint16": "U16",
    "int32": "I32",
    "uint32": "U32",
    "int64": "I64",
    "uint64": "U64",
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "complex64": "C64",
}
"""The types that safetensors has had for long; any other is written as its bytes, and the state says its type."""
WHOLE_BYTES = ("float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu", "complex32", "complex128")


class Part(NamedTuple):
    """This rank's part of a tensor that several ranks hold."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    offsets: tuple[int, ...]
    lengths: tuple[int, ...]


class Tensors:
    """What a state refers to, by name; one memory under two names is held once. parts: by the name of the whole."""

    def __init__(self) -> None:
        self.held: dict[str, Any] = {}
        self.parts: dict[str, Part] = {}
        self._known: dict[Any, str] = {}

    def keep(self, tensor: Any, path: str) -> dict[str, Any]:
        """What stands for TENSOR in the state; raises TriageError for one that has no plain bytes."""
        tensor = tensor.detach()
        if is_sharded(tensor):
            return self._keep_part(tensor, path)
        name = self._named(_plain(tensor, path), path)
        said: dict[str, Any] = {"$": "tensor", "name": name}
        dtype = type_of(tensor)
        return said if dtype in CODES else said | {"dtype": dtype, "shape": list(tensor.shape)}

    def copied(self) -> None:
        """From here on the tensors are copies in the memory of the host, which training does not change."""
        import torch

        used = [each for each in self.held.values() if each.is_cuda]
        for name, each in self.held.items():
            beside = torch.empty(each.shape, dtype=each.dtype, pin_memory=each.is_cuda)
            self.held[name] = beside.copy_(each, non_blocking=each.is_cuda)
        for device in {each.device for each in used}:
            torch.cuda.synchronize(device)

    def _keep_part(self, tensor: Any, path: str) -> dict[str, Any]:
        offsets, lengths = box_of(tensor)
        name = self._named(_plain(tensor.to_local(), path), path)
        self.parts[name] = Part(name, tuple(tensor.shape), type_of(tensor), offsets, lengths)
        return {"$": "tensor", "whole": name}

    def _named(self, tensor: Any, path: str) -> str:
        memory = (tensor.data_ptr(), tensor.device, tensor.dtype, tuple(tensor.shape), tuple(tensor.stride()))
        key = (*memory, tensor.is_conj(), tensor.is_neg()) if tensor.numel() else path
        if key in self._known:
            return self._known[key]
        name, number = path, 1
        while name in self.held:
            number += 1
            name = f"{path}#{number}"
        self.held[name] = tensor
        self._known[key] = name
        return name


def type_of(tensor: Any) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def data(tensor: Any) -> memoryview:
    """The bytes of TENSOR in its own order; a view of them where it lies on the host in one piece."""
    import torch

    flat = tensor.detach().resolve_conj().resolve_neg().cpu().contiguous().reshape(-1)
    return memoryview(flat.view(torch.uint8).numpy())


def in_place(tensor: Any) -> bool:
    """Whether `data` is a view of TENSOR's own memory."""
    return tensor.device.type == "cpu" and tensor.is_contiguous() and not (tensor.is_conj() or tensor.is_neg())


def is_sharded(tensor: Any) -> bool:
    there = sys.modules.get("torch.distributed.tensor")
    return there is not None and isinstance(tensor, there.DTensor)


def box_of(tensor: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Where this rank's part of a sharded TENSOR begins in each dimension, and its lengths there."""
    if any(each.is_partial() for each in tensor.placements):
        raise TriageError("a tensor is a partial sum over the ranks", "TrainingState", "Save it once it is reduced.")
    chunk = tensor.__create_chunk_list__()[0]
    return tuple(chunk.offsets), tuple(chunk.sizes)


def _plain(tensor: Any, path: str) -> Any:
    import torch
    from torch.utils._python_dispatch import is_traceable_wrapper_subclass

    why = ""
    if tensor.layout is not torch.strided or tensor.is_quantized:
        why = f"is {'quantized' if tensor.is_quantized else tensor.layout}"
    elif tensor.device.type == "meta":
        why = "is on the meta device, so it has no values yet"
    elif is_traceable_wrapper_subclass(tensor) or tensor.is_nested:
        why = f"is a {type(tensor).__qualname__}, which holds other tensors"
    elif (kind := type_of(tensor)) not in CODES and kind not in WHOLE_BYTES:
        why = f"is of type {kind}"
    if why:
        do = "Give what holds it a state_dict that is made of plain tensors."
        raise TriageError(f"{path} {why}; only plain tensors can be written", "TrainingState", do)
    return tensor
