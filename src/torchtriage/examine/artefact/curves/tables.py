"""Curves as text: the metrics.csv of Lightning's CSVLogger, and the trainer_state.json of transformers."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import msgspec

from torchtriage.examine.artefact.opened import Opened

LARGEST = 2**28
"""Bytes of a trainer_state.json that is read."""
_LINE = 2**20
Value = tuple[str, int, float]


class NoJson(Exception):
    """A trainer_state.json that breaks off, or is damaged."""


def rows(file: Opened) -> Iterator[Value]:
    """Column, step and value of each cell that holds a number; rows without a step are numbered by their epoch."""
    table = csv.reader(_lines(file))
    head = [name.strip() for name in next(table, [])]
    names = [name.lower() for name in head]
    at = next((names.index(name) for name in ("step", "global_step", "epoch") if name in names), 0)
    for number, row in enumerate(table):
        told = _number(row[at]) if at < len(row) else None
        step = int(told) if told is not None and abs(told) < 2**63 else number
        for name, cell in zip(head, row, strict=False):
            value = _number(cell)
            if value is not None and name.lower() not in ("step", "global_step", "epoch"):
                yield name, step, value


def state(file: Opened) -> Iterator[Value]:
    """Name, step and value of each number in the log_history; nothing where it is no such state.

    Raises NoJson.
    """
    data = b"".join(piece for piece in file.chunks() if file.given <= LARGEST)
    try:
        whole: Any = msgspec.json.decode(_spelled(data))
    except (msgspec.DecodeError, RecursionError) as error:
        raise NoJson(f"it is no JSON: {error}"[:300]) from error
    history = whole.get("log_history") if isinstance(whole, dict) else None
    for row in history if isinstance(history, list) else ():
        step = row.get("step") if isinstance(row, dict) else None
        if isinstance(step, int):
            yield from ((name, step, each) for name, told in row.items() if (each := _number(told)) is not None)


def _spelled(data: bytes) -> bytes:
    """DATA with the words that Python writes and JSON does not know as strings."""
    for word in (b"NaN", b"-Infinity", b"Infinity"):
        for before in (b": ", b":"):
            data = data.replace(before + word, before + b'"' + word + b'"')
    return data


def _number(cell: Any) -> float | None:
    if isinstance(cell, bool) or not isinstance(cell, str | int | float):
        return None
    with suppress(ValueError, OverflowError):
        return float(cell)
    return None


def _lines(file: Opened) -> Iterator[str]:
    """The lines of FILE; one of more than a MiB is cut."""
    rest = b""
    for chunk in file.chunks():
        *whole, rest = (rest + chunk).split(b"\n")
        rest = rest[-_LINE:]
        yield from (_line(each) for each in whole)
    if rest:
        yield _line(rest)


def _line(data: bytes) -> str:
    return data[:_LINE].decode("utf-8", "replace").replace("\0", "").replace("\r", "")
