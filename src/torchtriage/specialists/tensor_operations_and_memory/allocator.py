"""The figures that the CUDA allocator writes into its message of a lack of memory."""

from __future__ import annotations

import re

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
