"""What the names and shapes of a trace's matrix products say about the formats that they run in."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from torchtriage.core.evidence import Place
from torchtriage.examine.artefact.trace.rank import RankSummary, ShapeRow
from torchtriage.examine.detector import Sighting, detector

# cuBLAS and CUTLASS: float32 products that no tensor core computes, by names that are of capability 8.0 or later
_FULL = re.compile(r"ampere_sgemm|cutlass_(?:8|9|10)\d_simt_sgemm|sm(?:8|9|10)\d_xmma_gemm_f32f32_f32f32")
_PRODUCTS = ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::linear")
_SHORT = ("c10::Half", "c10::BFloat16", "Half", "BFloat16")
UNIT = 8  # numbers of 16 bits in 16 bytes: matmul-misaligned.md


@detector("trace/tf32-off")
def tf32_off(told: RankSummary) -> Iterator[Sighting]:
    """Float32 products run on a device that has TF32, in kernels that do not use it."""
    rows = [row for row in told.kernels if _FULL.search(row.name)]
    if rows and told.length:
        share = sum(row.nanoseconds for row in rows) / told.length
        fact = f"{share:.0%} of a step are float32 products without TF32: {rows[0].name[:60]}"
        yield Sighting(Place(path=told.path, rank=told.rank), fact, share, "of the step")


@detector("trace/matmul-misaligned")
def matmul_misaligned(told: RankSummary) -> Iterator[Sighting]:
    """Products of 16 bits have inner sizes that are no multiple of 8."""
    rows = [row for row in told.shapes if row.name in _PRODUCTS and _is_misaligned(row)]
    if rows and told.length:
        share = sum(row.nanoseconds for row in rows) / told.length
        fact = f"{share:.0%} of a step are products whose rows are no multiple of 16 bytes: {rows[0].name} of "
        yield Sighting(Place(path=told.path, rank=told.rank), fact + rows[0].dims[:60], share, "of the step")


def _is_misaligned(row: ShapeRow) -> bool:
    try:
        dims, types = json.loads(row.dims), json.loads(row.types)
        second = dims[2 if "add" in row.name else 1]
        return types[0] in _SHORT and any(_is_odd(size) for size in second[-2:])
    except (ValueError, TypeError, LookupError):
        return False


def _is_odd(size: Any) -> bool:
    """Large enough to matter, and no multiple of UNIT."""
    return isinstance(size, int) and size > UNIT and size % UNIT != 0
