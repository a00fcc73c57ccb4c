"""The collectives of one rank, and what it did before the first one of each step."""

from __future__ import annotations

import json
import math

import numpy as np
from numpy.typing import NDArray

from torchtriage.examine.artefact.trace import words
from torchtriage.examine.artefact.trace.events import NONE, Collective, Events
from torchtriage.examine.artefact.trace.rank import GROUPS, LETTERS, MEETINGS, Met
from torchtriage.examine.artefact.trace.steps import Steps

_BYTES = {
    "float": 4, "float32": 4, "double": 8, "float64": 8, "half": 2, "float16": 2, "bfloat16": 2, "long": 8, "int64": 8,
    "long int": 8, "int": 4, "int32": 4, "char": 1, "byte": 1, "bool": 1, "unsigned char": 1, "c10::bfloat16": 2,
    "c10::half": 2, "float8_e4m3fn": 1, "float8_e5m2": 1,
}  # fmt: skip


def met(events: Events, rows: NDArray[np.intp], steps: Steps, step: NDArray[np.intp]) -> list[Met]:
    """ROWS, by their begin, as they will be compared with other ranks'. STEP: of each, -1 for none."""
    order = np.argsort(events.start[rows], kind="stable")
    counted: dict[tuple[int, str], int] = {}
    made = []
    for place in order.tolist():
        row, index = int(rows[place]), int(step[place])
        if index < 0:
            continue
        told = _told(events, row)
        nth = counted.get((index, told.group), 0)
        counted[index, told.group] = nth + 1
        begin, number = int(events.start[row]), int(steps.number[index])
        size = told.elements * _BYTES.get(told.dtype.lower(), 4)
        made.append(
            Met(told.operation, told.group, told.sequence, number, nth, begin, begin + int(events.length[row]), size)
        )
    return made


def thinned(all_met: list[Met], most: int = MEETINGS) -> tuple[Met, ...]:
    """At most MOST: the same on every rank, since they are chosen by step and place in it."""
    kept = all_met
    for nth in (16, 4, 2, 1):
        if len(kept) <= most:
            break
        kept = [each for each in all_met if each.nth < nth]
    skip = 1
    while len(kept) > most:
        skip *= 2
        kept = [each for each in all_met if each.nth == 0 and each.step % skip == 0] if skip < 2**20 else kept[:most]
    return tuple(kept)


def groups(events: Events) -> dict[str, str]:
    """The ranks of each process group, as the trace tells them."""
    told = {each.group: each.ranks[:LETTERS] for each in events.collectives.values() if each.ranks}
    return dict(list(told.items())[:GROUPS])


def _told(events: Events, row: int) -> Collective:
    name = events.names[int(events.name[row])]
    if found := events.collectives.get(row):
        return found
    if events.category[row] != words.MARK:
        return Collective(words.operation(name))
    elements, dtype = _marked(events, int(events.shape[row]))
    return Collective(words.operation(name), elements=elements, dtype=dtype)


def _marked(events: Events, shape: int) -> tuple[int, str]:
    """Elements and type of the first input of a mark."""
    if shape == NONE:
        return 0, ""
    _, dims, types = events.shapes[shape]
    try:
        first, kind = json.loads(dims)[0], (json.loads(types) or [""])[0]
        return math.prod(int(each) for each in first), str(kind)
    except (ValueError, TypeError, IndexError, KeyError, RecursionError, OverflowError):
        return 0, ""
