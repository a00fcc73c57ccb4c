"""What the figures of an out-of-memory message work out to, in GiB."""

from __future__ import annotations

from msgspec.structs import replace

from torchtriage.core.query import Decoded
from torchtriage.routing.meaning import told
from torchtriage.specialists.tensor_operations_and_memory.allocator import contradictions, figures, gib

_GIB = 2**30
_NEAR = 1500
_FRAGMENTED = 0.1
_CONTEXT = 0.02
"""Of the capacity, what is not worth a word beside what this process holds."""


def cuda_out_of_memory(message: Decoded, text: str) -> Decoded | None:
    """The message of c10/cuda/CUDACachingAllocator.cpp, in its forms since torch 1.0."""
    return _worked_out(message, text)


def accelerator_out_of_memory(message: Decoded, text: str) -> Decoded | None:
    """The messages of the allocators that follow CUDA's: XPU and NPU."""
    return _worked_out(message, text)


def _worked_out(message: Decoded, text: str) -> Decoded | None:
    sizes = figures(text[message.start : message.start + _NEAR])
    if not sizes:
        return None
    device = message.fields.get("gpu")
    wanted = f"{'The device' if device is None else f'GPU {device}'} had no room for {_asked(sizes)}"
    if wrong := contradictions(sizes):
        kept = {name: value for name, value in message.fields.items() if name in ("tried", "tried_unit", "gpu")}
        said = f"{wanted}; the figures of the message contradict one another and are not used: {', '.join(wrong)}"
        return told(replace(message, fields=kept), said, contradiction="; ".join(wrong))
    if "in_use" not in sizes and "reserved" in sizes:
        sizes["in_use"] = sizes["reserved"]
    if {"capacity", "free", "in_use"} <= set(sizes):
        sizes["others"] = max(0.0, sizes["capacity"] - sizes["free"] - sizes["in_use"])
    said = "; ".join([wanted, *_sentences(sizes)])
    return told(message, said, **{f"{name}_gib": round(size / _GIB, 3) for name, size in sorted(sizes.items())})


def _asked(sizes: dict[str, float]) -> str:
    return gib(sizes["tried"]) if "tried" in sizes else "an allocation"


def _sentences(sizes: dict[str, float]) -> list[str]:
    said = []
    if {"capacity", "allocated"} <= set(sizes):
        said.append(f"of {gib(sizes['capacity'])}, tensors hold {gib(sizes['allocated'])}")
    elif "capacity" in sizes:
        said.append(f"it has {gib(sizes['capacity'])}")
    if "free" in sizes:
        said.append(f"{gib(sizes['free'])} are free")
    unused = sizes.get("unallocated", 0.0)
    if "unallocated" in sizes:
        said.append(f"the allocator keeps {gib(unused)} more without using it")
    if "capacity" in sizes and sizes.get("others", 0.0) > _CONTEXT * sizes["capacity"]:
        said.append(f"other processes and the CUDA context hold {gib(sizes['others'])}")
    tried, capacity = sizes.get("tried"), sizes.get("capacity")
    if tried is not None and capacity is not None and unused > tried and unused > _FRAGMENTED * capacity:
        said.append(f"{gib(tried)} would have fitted into what is kept unused: the memory is fragmented")
    return said
