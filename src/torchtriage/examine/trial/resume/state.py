"""A state that a leg has written down, and what differs between two of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from torchtriage.examine.trial.resume.trial import Part, Row

_SHOWN = 8  # numbers of a small tensor that are told in full
_DTYPES = {
    "float64": "f8", "float32": "f4", "float16": "f2", "int64": "i8", "int32": "i4", "int16": "i2", "int8": "i1",
    "uint8": "u1", "bool": "?", "complex64": "c8", "complex128": "c16",
}  # fmt: skip
Key = tuple[str, str]


class State:
    """The rows of one state by (kind, holder) and key."""

    def __init__(self, path: Path) -> None:
        told = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        self.unit, self.turn = int(told["unit"]), int(told["turn"])
        self._data = path.with_suffix(".bin")
        self.parts: dict[Key, dict[str, dict[str, Any]]] = {}
        for row in told["rows"]:
            self.parts.setdefault((row["kind"], row["holder"]), {})[row["key"]] = row

    def numbers(self, row: dict[str, Any]) -> Any:
        """The numbers of a tensor, flat, as float64 where they are real; None where they were not kept."""
        if "at" not in row:
            return None
        data = np.fromfile(self._data, np.uint8, row["bytes"], offset=row["at"])
        if row["dtype"] == "bfloat16":
            return (data.view("u2").astype("u4") << 16).view("f4").astype("f8")
        code = _DTYPES.get(row["dtype"])
        if code is None:
            return data.astype("f8")
        found = data.view(code)
        return found if code.startswith("c") else found.astype("f8")


def differences(before: State, after: State, first: State | None) -> tuple[tuple[Part, ...], int]:
    """What differs, part by part, and how many entries were compared. FIRST: the state as the job begins."""
    parts, entries = [], 0
    for key, rows in _paired(before, after):
        here, there = before.parts.get(key, {}), after.parts.get(rows, {})
        entries += len(here)
        begun = first.parts.get(key, {}) if first is not None else {}
        differing = [
            _row(before, after, here.get(name), there.get(name), begun.get(name)) for name in {**here, **there}
        ]
        found = tuple(row for row in differing if row is not None and not (row.new and key[0] in ("number", "tensor")))
        moves = not begun or any(_told(each) != _told(begun.get(name)) for name, each in here.items())
        if found:
            parts.append(Part(key[0], key[1], len({**here, **there}), found, moves))
    return tuple(parts), entries


def _paired(before: State, after: State) -> Iterator[tuple[Key, Key]]:
    """Holders by name; what is left over, in its order, with one of the same kind and the same entries."""
    spare = [key for key in after.parts if key not in before.parts]
    for key, rows in before.parts.items():
        match = key
        if key not in after.parts:
            match = next((each for each in spare if each[0] == key[0] and after.parts[each].keys() == rows.keys()), key)
        if match in spare:
            spare.remove(match)
        yield key, match
    yield from ((key, key) for key in spare)


def _told(row: dict[str, Any] | None) -> Any:
    if row is None:
        return None
    return row.get("mark", repr(row.get("value")))


def _row(
    before: State, after: State, here: dict[str, Any] | None, there: dict[str, Any] | None, begun: dict[str, Any] | None
) -> Row | None:
    if here is None or there is None:
        only = there if here is None else here
        assert only is not None  # noqa: S101 - one of the two is there
        return Row(only["key"], _value(before, here), _value(after, there), gone=there is None, new=here is None)
    if _told(here) == _told(there):
        return None
    anew = begun is not None and _told(begun) == _told(there)
    if "dtype" not in here or "dtype" not in there or here["shape"] != there["shape"]:
        return Row(here["key"], _value(before, here), _value(after, there), anew=anew)
    return _of_tensors(
        here, before.numbers(here), after.numbers(there), _value(before, here), _value(after, there), anew
    )


def _of_tensors(here: dict[str, Any], one: Any, two: Any, before: Any, after: Any, anew: bool) -> Row | None:
    if one is None or two is None:
        return Row(here["key"], before, after, anew=anew)
    with np.errstate(all="ignore"):
        distance = float(np.sqrt(np.sum(np.abs(one - two) ** 2)))
        norm = float(np.sqrt(np.sum(np.abs(one) ** 2)))
    same = (one == two) | (np.isnan(one) & np.isnan(two))
    if same.all() and here["dtype"] not in ("uint8",):  # 0 and -0, or two kinds of NaN
        return None
    return Row(
        here["key"], before, after, distance=distance, norm=norm, differing=int((~same).sum()), numbers=int(one.size),
        rounded=_rounded(here["dtype"], one, two), anew=anew,
    )  # fmt: skip


def _rounded(dtype: str, one: Any, two: Any) -> str:
    """The precision through which ONE becomes TWO."""
    if dtype not in ("float32", "float64"):
        return ""
    with np.errstate(all="ignore"):
        if np.array_equal(one.astype("f2").astype("f8"), two):
            return "float16"
        whole = np.ascontiguousarray(one.astype("f4")).view("u4").astype("u8")
        nearest = ((whole + 0x7FFF + ((whole >> 16) & 1)) >> 16 << 16).astype("u4").view("f4").astype("f8")
        if np.array_equal(nearest, two):
            return "bfloat16"
        return "float32" if dtype == "float64" and np.array_equal(one.astype("f4").astype("f8"), two) else ""


def _value(state: State, row: dict[str, Any] | None) -> Any:
    """What a sentence can show of a row: a plain value, or the numbers of a small tensor."""
    if row is None:
        return None
    if "dtype" not in row:
        return row.get("value", row.get("mark"))
    numbers = state.numbers(row)
    if numbers is None or numbers.size > _SHOWN or np.iscomplexobj(numbers):
        return None
    values = [float(each) for each in numbers]
    return values[0] if not row["shape"] else values


def distance(before: State, after: State, kinds: tuple[str, ...] = ("model",)) -> float | None:
    """The distance of all parameters over their norm; None where there are none."""
    square = norm = 0.0
    for key, rows in before.parts.items():
        for name, row in rows.items() if key[0] in kinds else ():
            other = after.parts.get(key, {}).get(name)
            one, two = before.numbers(row), after.numbers(other) if other is not None else None
            if one is None or two is None or one.shape != two.shape:
                continue
            square += float(np.sum(np.abs(one - two) ** 2))
            norm += float(np.sum(np.abs(one) ** 2))
    return (square / norm) ** 0.5 if norm else None
