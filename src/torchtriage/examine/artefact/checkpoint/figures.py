"""The figures of checkpoints: what there is, where the parts of the state lie, and the tree, as far as it is shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torchtriage.examine.artefact.checkpoint.components import groups
from torchtriage.examine.artefact.checkpoint.differences import as_dict, differences
from torchtriage.examine.artefact.checkpoint.looked import shown
from torchtriage.examine.artefact.checkpoint.read import Checkpoint, Checkpoints
from torchtriage.examine.artefact.checkpoint.tensors import Array, Tensor, parts
from torchtriage.examine.artefact.pickle.nodes import Called, Named

ROWS = 400
"""Lines of the tree of one checkpoint."""
WIDE, DEEP = 60, 8
"""Entries of one container that are shown, and containers within each other."""
_TEXT = 120


def measurements(subject: Checkpoints) -> dict[str, Any]:
    """checkpoints: for each its figures; of two that were named together, also what differs between their keys."""
    told = {"differences": as_dict(differences(*subject.each))} if len(subject.each) == 2 else {}
    return {"checkpoints": [_figures(each) for each in subject.each], **told}


def _figures(each: Checkpoint) -> dict[str, Any]:
    """tree: rows of path, what it is, dtype, shape, bytes, of which containers have the first alone; cut where long."""
    rows = list(_rows(each.tree))
    found = each.found
    by_dtype: dict[str, list[int]] = {}
    for _, tensor in each.tensors:
        row = by_dtype.setdefault(tensor.dtype or "?", [0, 0])
        row[0], row[1] = row[0] + 1, row[1] + tensor.bytes
    return {
        "file": each.path,
        "form": each.form,
        "bytes": each.size,
        "bytes_read": each.taken,
        "tensors": len(each.tensors),
        "dtypes": {dtype: {"tensors": count, "bytes": size} for dtype, (count, size) in sorted(by_dtype.items())},
        "parameters": sum(tensor.numel for _, tensor in _of_model(each)),
        "components": {slug: paths[:8] for slug, paths in found.paths.items()},
        "lacks": [part.slug for part in each.lacking],
        "training": each.is_training,
        "counts": _counts(each),
        "needs_code": {
            "runs": [name for name, _ in each.foreign.code][:20],
            "objects": sorted({name for item in each.contents.values() for name, _ in item.foreign.objects})[:20],
        },
        "metadata": {name: item.metadata for name, item in each.contents.items() if item.metadata},
        "verified": _verified(each),
        "tree": rows[:ROWS],
        "tree_rows": len(rows) if len(rows) <= ROWS else f"more than {ROWS}",
    }


def _of_model(each: Checkpoint) -> Iterator[tuple[str, Tensor]]:
    from torchtriage.examine.artefact.checkpoint.tensors import tensors

    for value in each.found.values.get("model", ()):
        yield from tensors(value)


def _counts(each: Checkpoint) -> dict[str, Any]:
    """Steps that the optimizer has made, and what the schedulers and counters say."""
    schedulers = [item.get("last_epoch") for item in each.found.values.get("scheduler", ()) if isinstance(item, dict)]
    rates = [group.get("lr") for item in each.found.values.get("optimizer", ()) for group in groups(item)]
    return {
        "optimizer": each.steps,
        "scheduler": [value for value in schedulers if isinstance(value, int | float)],
        "epoch": each.found.plain("epoch"),
        "step": each.found.plain("step"),
        "lr": [value for value in rates if isinstance(value, int | float)][:8],
    }


def _verified(each: Checkpoint) -> dict[str, Any] | None:
    if each.verdict is None:
        return None
    return {
        "checked": each.verdict.checked,
        "without_checksum": each.verdict.unchecked,
        "not_finite": [
            {"tensor": item.tensor, "numbers": item.numbers, "nan": item.nan, "inf": item.inf}
            for item in shown(each.verdict.not_finite)
        ],
    }


def _rows(root: Any) -> Iterator[list[Any]]:
    """One row for each entry, containers before what is in them; at most some more than ROWS."""
    todo: list[tuple[int, str, Any]] = [(0, "", root)]
    seen: set[int] = set()
    made = 0
    while todo and made <= ROWS:
        depth, path, value = todo.pop()
        made += 1
        yield [path or "/", *_said(value)]
        inner = list(parts(value)) if not isinstance(value, Tensor | Array) else []
        if not inner or depth == DEEP or id(value) in seen or not any(_is_worth(each) for _, each in inner):
            continue
        seen.add(id(value))
        below = [(depth + 1, f"{path}/{str(key)[:_TEXT]}", each) for key, each in inner[:WIDE]]
        if len(inner) > WIDE:
            below.append((depth + 1, f"{path}/…", f"{len(inner) - WIDE:,} more"))
        todo += reversed(below)


def _is_worth(value: Any) -> bool:
    """A long list of numbers is one row."""
    return isinstance(value, dict | Tensor | Array | Called | str) or (isinstance(value, list | tuple) and bool(value))


def _said(value: Any) -> list[Any]:
    match value:
        case Tensor():
            kind = f"{value.kind} tensor" if value.kind else "tensor"
            return [kind, value.dtype, list(value.shape), value.bytes]
        case Array():
            return ["array", value.dtype, list(value.shape), len(value.data)]
        case Called() | Named():
            said = f"object of {value.name} (not made)"
        case dict() | list() | tuple() | bytes():
            said = f"{type(value).__name__} of {len(value):,}"
        case int() if value.bit_length() > 128:
            said = "a number of many digits"
        case _:
            said = value if isinstance(value, str) else repr(value)
    return [said[:_TEXT]]
