"""What a run writes down when it ends by an index that is out of range."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

from .events import Index

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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
            found = _lookup(job, error) or _plain(error)
            if found is not None:
                job.record(found)

    job.listen(ending)


def _lookup(job: Job, error: BaseException) -> Index | None:
    """What a look-up of torch.nn.functional was given; None when none failed."""
    import torch

    module = None
    for frame in _frames(error):
        owner = frame.f_locals.get("self")
        if isinstance(owner, torch.nn.Module) and frame.f_code.co_name == "forward":
            module = owner
        name = frame.f_code.co_name
        if name in _TABLES and frame.f_code.co_filename.endswith("nn/functional.py"):
            found = _outside(frame.f_locals, name)
            if found is not None:
                found.module = job.module_name(module) if module is not None else None
                return found
    return None


def _outside(given: Mapping[str, Any], op: str) -> Index | None:
    """The ids that the table has no row for; None where they cannot be read, as on a device after its assertion."""
    ids, table, dimension = _TABLES[op]
    values, rows = given[ids], given[table]
    if values.is_floating_point() or values.device.type != "cpu" or not values.numel():
        return None
    limit = int(rows.shape[min(dimension, rows.dim() - 1)])
    wrong = (values < 0) | (values >= limit)
    if dimension:
        wrong &= values != given.get("ignore_index", -100)
    if not bool(wrong.any()):
        return None
    low, high = int(values[wrong].min()), int(values[wrong].max())
    return Index(op=op, low=low, high=high, limit=limit, wrong=int(wrong.sum()), of=values.numel())


def _plain(error: BaseException) -> Index | None:
    """What the message of a failed indexing says, and whether a device has given up."""
    found = _BOUNDS.search(str(error))
    if found is None:
        return Index(op="assert") if "device-side assert" in str(error) else None
    index, dimension, size = (int(each) for each in found.groups())
    return Index(op="indexing", module=None, low=index, high=index, limit=size, dimension=dimension)


def _frames(error: BaseException) -> Iterator[Any]:
    trace = error.__traceback__
    while trace is not None:
        yield trace.tb_frame
        trace = trace.tb_next
