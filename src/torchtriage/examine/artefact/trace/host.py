"""What the host did in each window of time, in a trace without a device."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from torchtriage.examine.artefact.trace import words
from torchtriage.examine.artefact.trace.events import Events, Numbers
from torchtriage.examine.artefact.trace.spans import Spans, both, covered, union

PHASES = ("input", "optimizer", "compute", "communication", "host")


def worked(events: Events, begins: Numbers, ends: Numbers) -> dict[str, Numbers]:
    """Nanoseconds of each window, each counted once, in the order of PHASES.

    input: in a DataLoader's next batch. optimizer: in its step. compute: in operators. communication: a collective
    under way that none of these hides. host: nothing that was recorded, so Python.
    """
    marks, operators = events.of(words.MARK), _of_main(events)
    layers = (
        _spans(events, events.named(marks, lambda name: name.startswith(words.DATA))),
        _spans(events, events.named(marks, lambda name: name.startswith(words.OPTIMIZER))),
        _spans(events, operators),
        _spans(events, collectives(events)),
    )
    told: dict[str, Numbers] = {}
    upper, before = (np.zeros(0, np.int64), np.zeros(0, np.int64)), np.zeros(len(begins), np.int64)
    for phase, layer in zip(PHASES, layers, strict=False):
        upper = both(upper, layer)
        reached = covered(upper, begins, ends)
        told[phase], before = reached - before, reached
    told["host"] = ends - begins - before
    return told


def collectives(events: Events) -> NDArray[np.intp]:
    """The marks that a process group sets from the begin to the end of a collective."""
    return events.named(events.of(words.MARK), words.host_collective)


def main(events: Events) -> int:
    """The thread that trains: the one with the marks of steps, else the one with the most time in operators."""
    steps = events.named(events.of(words.MARK), words.STEP.match)
    rows = steps if len(steps) else events.of(words.OPERATOR)
    if not len(rows):
        return -1
    spent = np.bincount(events.thread[rows], weights=events.length[rows].astype(float))
    return int(spent.argmax())


def _of_main(events: Events) -> NDArray[np.intp]:
    rows = events.of(words.OPERATOR)
    return np.compress(events.thread[rows] == main(events), rows)


def _spans(events: Events, rows: NDArray[np.intp]) -> Spans:
    return union(events.start[rows], events.end[rows])
