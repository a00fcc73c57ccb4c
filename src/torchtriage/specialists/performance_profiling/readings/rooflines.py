"""Which kernels of a trace are limited by the device's memory and which by its arithmetic, where shapes tell it."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from msgspec import Struct

from torchtriage.examine.artefact.trace.rank import RankSummary, ShapeRow
from torchtriage.examine.detector import CannotSee

KNOWN = 0.5
"""Of the kernels' time that has to be told by shapes before the rest is judged by it."""
REACHED = 0.3
"""Of the memory's peak that a kernel has to reach to be called limited by it: below it is limited by neither."""


class Peak(Struct, frozen=True):
    """Of a device, by its data sheet, dense: FLOP a second in float32 and in 16 bits, and bytes a second of memory."""

    full: float
    half: float
    memory: float


PEAKS = {  # NVIDIA's data sheets, SXM where there are several
    "B200": Peak(80e12, 2250e12, 8.0e12),
    "H200": Peak(67e12, 989e12, 4.8e12),
    "H100 PCIe": Peak(51e12, 756e12, 2.0e12),
    "H100": Peak(67e12, 989e12, 3.35e12),
    "A100-SXM4-80GB": Peak(19.5e12, 312e12, 2.04e12),
    "A100": Peak(19.5e12, 312e12, 1.56e12),
    "A10": Peak(31.2e12, 125e12, 0.6e12),
    "L40S": Peak(91.6e12, 362e12, 0.864e12),
    "L4": Peak(30.3e12, 121e12, 0.3e12),
    "V100": Peak(15.7e12, 125e12, 0.9e12),
    "T4": Peak(8.1e12, 65e12, 0.32e12),
    "RTX 4090": Peak(82.6e12, 165e12, 1.01e12),
    "RTX 3090": Peak(35.6e12, 71e12, 0.936e12),
}
_SIZES = {"half": 2, "bfloat16": 2, "double": 8, "long int": 8, "long": 8, "bool": 1, "unsigned char": 1, "char": 1}
_PRODUCTS = {"aten::mm": 0, "aten::addmm": 1, "aten::bmm": 0, "aten::baddbmm": 1, "aten::matmul": 0, "aten::linear": 0}


# cuBLAS, cuDNN and CUTLASS name the instruction; flash and fused attention have no other form
_TENSOR_CORES = re.compile(
    r"(?:s|h|i|d|bf|tf32_s)\d*(?:884|1688|16816|16832|64x\d+x16)|tensorop|wgmma|hmma|imma|tf32tf32|bf16bf16|f16f16|"
    r"flash_(?:fwd|bwd)|fmha|sm90_xmma",
    re.I,
)


def on_tensor_cores(told: RankSummary) -> float:
    """Of the time of the longest kernels the part whose names say that tensor cores compute, from 0 to 1."""
    whole = sum(row.nanoseconds for row in told.kernels)
    return sum(row.nanoseconds for row in told.kernels if _TENSOR_CORES.search(row.name)) / max(whole, 1)


def limited_by_memory(told: RankSummary) -> float:
    """Of the kernels' time the part in which they wait for memory, from 0 to 1; 0 where nothing tells it."""
    peak = peak_of(told.device or "")
    limited = sum(row.nanoseconds for row in told.shapes if peak and _waits(row, peak))
    return min(limited / max(told.kernel_time, 1), 1.0)


def known(told: RankSummary) -> None:
    """Raises CannotSee where shapes or the device are not known for enough of the kernels' time."""
    if peak_of(told.device or "") is None:
        raise CannotSee(f"the peaks of {told.device} are not known", "Compare with the figures of its data sheet.")
    if sum(row.nanoseconds for row in told.shapes) < KNOWN * told.kernel_time:
        raise CannotSee(
            "the trace has no shapes of the operators that launched its kernels",
            "Record with torch.profiler.profile(record_shapes=True).",
        )


def said(told: RankSummary) -> str:
    """The longest of them, with what they reach."""
    peak = peak_of(told.device or "")
    rows = [row for row in told.shapes if peak and _waits(row, peak)][:2]
    return "; ".join(
        f"{row.name} {row.dims[:60]} at {_bytes(row) * row.count / row.nanoseconds:,.0f} GB/s" for row in rows
    ) + (f" of {peak.memory / 1e9:,.0f} that {told.device} has" if peak else "")


def peak_of(device: str) -> Peak | None:
    return next((peak for name, peak in PEAKS.items() if name in device.replace("-PCIE", " PCIe")), None)


def _waits(row: ShapeRow, peak: Peak) -> bool:
    """Whether the memory needs longer than the arithmetic, and is busy with it."""
    moved, done = _bytes(row) * row.count, _operations(row) * row.count
    by_memory = moved / peak.memory
    by_arithmetic = done / (peak.half if _size(row) <= 2 else peak.full)
    return by_memory > by_arithmetic and by_memory * 1e9 >= REACHED * row.nanoseconds


def _bytes(row: ShapeRow) -> int:
    """At least: each input read once, and as much written as the largest of them, or as a product has."""
    inputs = [math.prod(dims) for dims in _dims(row) if dims]
    out = _out(row) or max(inputs, default=0)
    return (sum(inputs) + out) * _size(row)


def _operations(row: ShapeRow) -> int:
    """Floating-point operations of one call: of a product 2 m n k, of anything else some for each element."""
    dims = _dims(row)
    at = _PRODUCTS.get(row.name)
    if at is not None and len(dims) > at + 1 and len(dims[at]) >= 2 and len(dims[at + 1]) >= 2:
        return 2 * math.prod(dims[at]) * dims[at + 1][-1]
    if "attention" in row.name and len(dims) >= 2 and len(dims[0]) == 4:
        return 4 * math.prod(dims[0]) * dims[1][2]
    if "conv" in row.name and len(dims) >= 2 and len(dims[1]) >= 3:
        return 2 * math.prod(dims[0][:1]) * math.prod(dims[0][2:]) * math.prod(dims[1])
    return 8 * max((math.prod(each) for each in dims), default=0)


def _out(row: ShapeRow) -> int:
    dims, at = _dims(row), _PRODUCTS.get(row.name)
    if at is None or len(dims) <= at + 1 or not dims[at] or not dims[at + 1]:
        return 0
    return math.prod(dims[at][:-1]) * dims[at + 1][-1]


def _size(row: ShapeRow) -> int:
    """Bytes of an element of the first input."""
    try:
        first: Any = (json.loads(row.types) or ["float"])[0]
    except (ValueError, TypeError, KeyError):
        return 4
    return _SIZES.get(str(first).removeprefix("c10::").lower(), 4)


def _dims(row: ShapeRow) -> list[list[int]]:
    """The shapes of the inputs; what is none is an empty one."""
    try:
        read: Any = json.loads(row.dims)
        read = json.loads(read) if isinstance(read, str) else read
    except ValueError:
        return []
    if not isinstance(read, list):
        return []
    return [each if isinstance(each, list) and all(isinstance(one, int) for one in each) else [] for each in read]
