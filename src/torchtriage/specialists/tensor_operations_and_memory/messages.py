"""What the figures of an out-of-memory message work out to, in GiB."""

from __future__ import annotations

import re

from torchtriage.core.query import Decoded
from torchtriage.routing.meaning import told

_UNITS = {"bytes": 1, "b": 1, "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40, "eib": 2**60}
_FIGURES = {
    "capacity": ("total capacity of SIZE", "SIZE total capacity"),
    "free": ("of which SIZE is free", "SIZE free"),
    "in_use": ("this process has SIZE memory in use",),
    "allocated": ("Of the allocated memory SIZE is allocated by PyTorch", "SIZE already allocated"),
    "unallocated": ("and SIZE is reserved by PyTorch but unallocated",),
    "reserved": ("SIZE reserved in total by PyTorch",),
    "cached": ("SIZE cached",),
    "tried": ("Tried to allocate SIZE",),
}
_SIZE = r"(?<![\d.,-])(?P<size>[\d.]{1,12}) (?P<unit>[KMGTE]iB|bytes)"
_PATTERNS = {
    name: [re.compile(form.replace("SIZE", _SIZE), re.IGNORECASE | re.ASCII) for form in forms]
    for name, forms in _FIGURES.items()
}
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


def figures(text: str) -> dict[str, float]:
    """The figures of a message of the CUDA allocator in bytes, by name."""
    sizes = {name: size for name, forms in _PATTERNS.items() if (size := _size(text, forms)) is not None}
    if "cached" in sizes and "allocated" in sizes:  # torch 1.0 to 1.3: beside what is allocated
        sizes["reserved"] = sizes["allocated"] + sizes.pop("cached")
    if "unallocated" not in sizes and {"reserved", "allocated"} <= set(sizes):
        sizes["unallocated"] = sizes["reserved"] - sizes["allocated"]
    return sizes


def _size(text: str, forms: list[re.Pattern[str]]) -> float | None:
    found = next((match for form in forms if (match := form.search(text))), None)
    if found is None:
        return None
    try:
        return float(found["size"]) * _UNITS[found["unit"].lower()]
    except ValueError:  # "1.2.3": digits and points, and yet no number
        return None


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
