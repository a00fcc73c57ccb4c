"""A file of safetensors: a header of JSON, and then the numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from torchtriage.examine.artefact.checkpoint.content import Content, Trouble
from torchtriage.examine.artefact.checkpoint.sources import Damaged, Source
from torchtriage.examine.artefact.checkpoint.tensors import SIZES, Tensor

HEADER = 100_000_000
"""Bytes that the header of safetensors may have, as its own library says."""
_SAFE = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I64": "int64", "I32": "int32",
    "I16": "int16", "I8": "int8", "U8": "uint8", "U16": "uint16", "U32": "uint32", "U64": "uint64", "BOOL": "bool",
    "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu", "C64": "complex64",
}  # fmt: skip


def read(made: Content, source: Source) -> None:
    """Fills MADE; raises Damaged."""
    length = int.from_bytes(source.at(0, 8), "little")
    if length + 8 > source.size:
        raise Damaged(f"its header should have {length:,} bytes and the file has {source.size:,}", 8)
    try:
        header = msgspec.json.decode(source.at(8, length))
    except (ValueError, RecursionError) as error:
        raise Damaged(f"its header of {length:,} bytes is no JSON: {error}"[:300], 8) from error
    if not isinstance(header, dict):
        raise Damaged("its header is no object of JSON", 8)
    said = header.pop("__metadata__", None) or {}
    made.metadata = said if isinstance(said, dict) else {}
    if said != made.metadata or not all(isinstance(each, str) for each in made.metadata.values()):
        made.wrong("its __metadata__ is no table of texts: safetensors refuses the file", 8)
    made.tree = dict(_rows(made, header, length + 8))
    end = max((start + size for start, size, _ in made.places.values()), default=length + 8)
    if end > source.size:
        whole = sum(start + size <= source.size for start, size, _ in made.places.values())
        rescue = f"{whole:,} of {len(made.places):,} tensors lie whole before the cut"
        made.wrong(f"its tensors end at byte {end:,} and the file at byte {source.size:,}", source.size, rescue)
    elif end < source.size:
        made.wrong(
            f"its tensors end at byte {end:,}, and {source.size - end:,} bytes follow that nothing tells of", end
        )


def _row(row: Any) -> tuple[Tensor, int, int] | None:
    """The tensor of a row in the header, and where it begins and ends; None where the row says something else."""
    try:
        start, end = row["data_offsets"]
        shape = tuple(row["shape"])
        plain = all(type(each) is int and 0 <= each < 2**62 for each in (start, end, *shape)) and len(shape) <= 64
        tensor = Tensor(_SAFE.get(row["dtype"], str(row["dtype"])[:20]), shape)
    except (KeyError, TypeError, ValueError):
        return None
    return (tensor, start, end) if plain else None


def _rows(made: Content, header: dict[str, Any], base: int) -> Iterator[tuple[str, Tensor]]:
    taken: list[tuple[int, int, str]] = []
    for name, row in header.items():
        told = _row(row)
        if told is None:
            made.wrong(f"{name[:80]}: its row in the header is not dtype, shape and two offsets", 8)
            continue
        tensor, start, end = told
        if tensor.dtype in SIZES and tensor.bytes != end - start:
            shape = list(tensor.shape)
            why = f"{name[:80]}: {tensor.dtype} of shape {shape} needs {tensor.bytes:,} bytes, not {end - start:,}"
            made.troubles.append(Trouble(made.path, why, base + start, tensor=name))
        made.places[name] = (base + start, end - start, 0)
        taken.append((start, end, name))
        yield name, tensor
    if taken and (first := min(taken))[0] > 0:
        made.wrong(
            f"{first[0]:,} bytes stand before {first[2][:80]}, the first of its tensors: safetensors refuses that", base
        )
    for (_, end, one), (start, _, other) in zip(sorted(taken), sorted(taken)[1:], strict=False):
        if start != end:
            what = "overlap" if start < end else "leave a gap"
            made.wrong(f"{one[:80]} and {other[:80]} {what} at byte {base + end:,}", base + end)
            return
