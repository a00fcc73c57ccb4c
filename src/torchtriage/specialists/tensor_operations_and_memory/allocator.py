"""The figures that the allocators of GPUs write into their message of a lack of memory."""

from __future__ import annotations

import re

_UNITS = {"bytes": 1, "b": 1, "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40, "eib": 2**60}
_FIGURES = {
    "capacity": ("total capaci?ty of SIZE", "SIZE total capacity"),
    "free": ("of which SIZE is free", "SIZE free"),
    "in_use": ("this process has SIZE memory in use",),
    "allocated": ("Of the allocated memory SIZE is allocated by PyTorch", "SIZE already allocated"),
    "pooled": ("with SIZE allocated in private pools",),
    "unallocated": ("and SIZE is reserved by PyTorch but unallocated",),
    "reserved": ("SIZE reserved in total by PyTorch",),
    "cached": ("SIZE cached",),
    "tried": ("Tried to allocate SIZE",),
}
_SIZE = r"(?<![\d.,-])(?P<size>[\d.]{1,20}) (?P<unit>[KMGTE]iB|bytes)"
_PATTERNS = {
    name: [re.compile(form.replace("SIZE", _SIZE), re.IGNORECASE | re.ASCII) for form in forms]
    for name, forms in _FIGURES.items()
}


_NEXT = re.compile(r"(?<!^)\w{2,4} out of memory", re.IGNORECASE)
_SLACK = 1.01
"""The figures are rounded to two places: 1.00 GiB and 1,024.50 MiB are the same."""


def figures(text: str) -> dict[str, float]:
    """The figures of the first message of an allocator in TEXT, in bytes, by name."""
    text = " ".join(text.split())
    first = _NEXT.search(text, text.lower().find("out of memory") + 1)
    text = text[: first.start()] if first else text
    sizes = {name: size for name, forms in _PATTERNS.items() if (size := _size(text, forms)) is not None}
    if "cached" in sizes and "allocated" in sizes:  # torch 1.0 to 1.3: beside what is allocated
        sizes["reserved"] = sizes["allocated"] + sizes.pop("cached")
    if "unallocated" not in sizes and {"reserved", "allocated"} <= set(sizes):
        sizes["unallocated"] = sizes["reserved"] - sizes["allocated"]
    return sizes


def contradictions(sizes: dict[str, float]) -> list[str]:
    """What cannot be true of SIZES: no part is larger than the device, nor are the parts together."""
    capacity = sizes.get("capacity")
    said = [f"{_NAMES[name]} is negative" for name, size in sizes.items() if size < -(2**20)]
    if capacity is None:
        return said
    parts = [name for name in ("free", "in_use", "allocated", "reserved") if sizes.get(name, 0.0) > _SLACK * capacity]
    said += [f"{_NAMES[name]} is {gib(sizes[name])} of {gib(capacity)}" for name in parts]
    if not said and sizes.get("free", 0.0) + sizes.get("in_use", 0.0) > _SLACK * capacity:
        said.append(f"{gib(sizes['free'])} free and {gib(sizes['in_use'])} in use are more than {gib(capacity)}")
    return said


_NAMES = {"free": "what is free", "in_use": "what this process has in use", "allocated": "what tensors hold",
          "reserved": "what the allocator reserves", "unallocated": "what is reserved and not used",
          "tried": "what was asked for", "capacity": "the capacity", "pooled": "what private pools hold"}  # fmt: skip


def gib(size: float) -> str:
    """SIZE in bytes, for people."""
    return f"{size / 2**30:.2f} GiB" if abs(size) >= 2**30 else f"{size / 2**20:.2f} MiB"


def _size(text: str, forms: list[re.Pattern[str]]) -> float | None:
    found = next((match for form in forms if (match := form.search(text))), None)
    if found is None:
        return None
    try:
        return float(found["size"]) * _UNITS[found["unit"].lower()]
    except ValueError:  # "1.2.3": digits and points, and yet no number
        return None
