"""What a run writes down when it ends by an index that is out of range."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchtriage.examine.run.job.job import Job

_TABLES = {
    "embedding": ("input", "weight", 0),
    "cross_entropy": ("target", "input", 1),
    "nll_loss": ("target", "input", 1),
}
_BOUNDS = re.compile(r"index (-?\d+) is out of bounds for dimension (\d+) with size (\d+)")


def indices(job: Job) -> None:
    """At a crash: which ids an embedding or a loss was given, and how many rows or classes it has.

    Nothing is watched before: the frames of the error still hold the ids and the table.
    """

    def ending() -> None:
        error = getattr(sys, "last_value", None)
        if isinstance(error, (IndexError, RuntimeError)):
            facts = _lookup(job, error) or _plain(error)
            if facts:
                job.record("index", **facts)

    job.listen(ending)


def _lookup(job: Job, error: BaseException) -> dict[str, Any]:
    """What a look-up of torch.nn.functional was given; empty when none failed."""
    import torch

    module = None
    for frame in _frames(error):
        owner = frame.f_locals.get("self")
        if isinstance(owner, torch.nn.Module) and frame.f_code.co_name == "forward":
            module = owner
        name = frame.f_code.co_name
        if name in _TABLES and frame.f_code.co_filename.endswith("nn/functional.py"):
            ids, table, dimension = _TABLES[name]
            found = _outside(frame.f_locals, ids, table, dimension)
            if found:
                named = job.module_name(module) if module is not None else None
                return {"op": name, "module": named, **found}
    return {}


def _outside(given: dict[str, Any], ids: str, table: str, dimension: int) -> dict[str, Any]:
    """The ids that the table has no row for; empty where they cannot be read, as on a device after its assertion."""
    values, rows = given[ids], given[table]
    if values.is_floating_point() or values.device.type != "cpu" or not values.numel():
        return {}
    limit = int(rows.shape[min(dimension, rows.dim() - 1)])
    wrong = (values < 0) | (values >= limit)
    if dimension:
        wrong &= values != given.get("ignore_index", -100)
    if not bool(wrong.any()):
        return {}
    low, high = int(values[wrong].min()), int(values[wrong].max())
    return {"low": low, "high": high, "limit": limit, "wrong": int(wrong.sum()), "of": values.numel()}


def _plain(error: BaseException) -> dict[str, Any]:
    """What the message of a failed indexing says, and whether a device has given up."""
    found = _BOUNDS.search(str(error))
    if found is None:
        return {"op": "assert"} if "device-side assert" in str(error) else {}
    index, dimension, size = (int(each) for each in found.groups())
    return {"op": "indexing", "module": None, "low": index, "high": index, "limit": size, "dimension": dimension}


def _frames(error: BaseException) -> Iterator[Any]:
    trace = error.__traceback__
    while trace is not None:
        yield trace.tb_frame
        trace = trace.tb_next
