"""What the figures of an out-of-memory message work out to, in GiB."""

from __future__ import annotations

from torchtriage.core.query import Decoded
from torchtriage.routing.meaning import told
from torchtriage.specialists.tensor_operations_and_memory.allocator import figures

_GIB = 2**30
_NEAR = 1500
_FRAGMENTED = 0.1


def cuda_out_of_memory(message: Decoded, text: str) -> Decoded | None:
    """The message of c10/cuda/CUDACachingAllocator.cpp, in its forms since torch 1.0."""
    sizes = figures(text[message.start : message.start + _NEAR])
    if sizes.get("unallocated", 0.0) < 0:  # figures that contradict each other say nothing
        return None
    if "in_use" not in sizes and "reserved" in sizes:
        sizes["in_use"] = sizes["reserved"]
    if {"capacity", "free", "in_use"} <= set(sizes):
        sizes["others"] = max(0.0, sizes["capacity"] - sizes["free"] - sizes["in_use"])
    if "capacity" not in sizes or "allocated" not in sizes:
        return None
    said = "; ".join(_sentences(sizes))
    return told(message, said, **{f"{name}_gib": round(size / _GIB, 3) for name, size in sorted(sizes.items())})


def _sentences(sizes: dict[str, float]) -> list[str]:
    said = [f"Of {_gib(sizes['capacity'])}, tensors hold {_gib(sizes['allocated'])}"]
    unused = sizes.get("unallocated", 0.0)
    if "unallocated" in sizes:
        said.append(f"the allocator keeps {_gib(unused)} more without using it")
    if sizes.get("others", 0.0) > 0.02 * sizes["capacity"]:
        said.append(f"other processes and the CUDA context hold {_gib(sizes['others'])}")
    tried = sizes.get("tried")
    if tried is not None and unused > tried and unused > _FRAGMENTED * sizes["capacity"]:
        said.append(f"{_gib(tried)} would have fitted into what is kept unused: the memory is fragmented")
    return said


def _gib(size: float) -> str:
    return f"{size / _GIB:.2f} GiB" if size >= 0.01 * _GIB else f"{size / 2**20:.2f} MiB"
