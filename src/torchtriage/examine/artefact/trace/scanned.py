"""The first word on a trace: what its device did, by one regular expression over the text, no event ever decoded."""

from __future__ import annotations

import re

import numpy as np

from torchtriage.examine.artefact.opened import Opened, Unreadable
from torchtriage.examine.artefact.trace import words
from torchtriage.examine.artefact.trace.device import IDLE, Device, worked
from torchtriage.examine.artefact.trace.events import NONE, Events, Gathering, Table
from torchtriage.examine.artefact.trace.pieces import Pieces, ending
from torchtriage.examine.artefact.trace.rank import Glance
from torchtriage.examine.artefact.trace.steps import steps
from torchtriage.examine.artefact.trace.summed import Told, summary
from torchtriage.examine.artefact.trace.wire import NotPlain, times

_WANTED = "kernel|gpu_memcpy|gpu_memset|user_annotation|Kernel|Memcpy|Memset"
_NUMBER = r"(\d++(?:\.\d++)?+)"
_PATTERN = (
    rf'"cat"\s*+:\s*+"({_WANTED})"'
    # in the order in which Kineto writes them; where that fails the times stay empty
    r'(?:\s*+,\s*+"name"\s*+:\s*+"([^"\\]*+)"\s*+,\s*+"pid"\s*+:\s*+[^,"{}]*+,\s*+"tid"\s*+:\s*+[^,"{}]*+,'
    rf'\s*+"ts"\s*+:\s*+{_NUMBER}\s*+,\s*+"dur"\s*+:\s*+{_NUMBER}\s*+(?=[,}}])'
    r'(?!,\s*+"(?:dur|ts|cat|name|ph)"))?'
)
_EVENT = re.compile(_PATTERN.encode())


TOGETHER = 2**14
"""Events that are made into columns at once."""


def glance(path: str) -> Glance:
    """The first word on the trace at PATH. Raises Unreadable."""
    with Opened(path) as file:
        pieces = Pieces(file.read)
        events = _scanned(pieces)
        if not pieces.found:
            raise Unreadable("there is no list of traceEvents in it", "Name a trace that torch.profiler has exported.")
    if events is None:
        return _from(path)
    device = Device(events)
    windows = steps(events, device.rows, np.full(len(device.rows), NONE))
    spent = {phase: int(each.sum()) for phase, each in worked(device, windows.begin, windows.end).items()}
    length = int((windows.end - windows.begin).sum())
    told = Told(path, pieces.fields())
    total = {**spent, "idle": length - sum(spent.values())}
    return Glance(path, told.rank, told.device, len(windows.begin), length, total, exactly=False)


def _from(path: str) -> Glance:
    told = summary(path)
    total = {phase: time for phase, time in told.total.items() if phase not in IDLE}
    total["idle"] = sum(told.total.get(phase, 0) for phase in IDLE)
    return Glance(path, told.rank, told.device, told.count, told.length, total, exactly=True)


def _scanned(pieces: Pieces) -> Events | None:
    """Work on the device and marks; None where the text is not as Kineto writes it, or has no device in it."""
    columns, names = Gathering(), Table[bytes]()
    rows: list[tuple[bytes, ...]] = []
    for _, text, last in pieces if pieces.found else ():
        rows += _EVENT.findall(text)
        if len(rows) >= TOGETHER or last:
            if rows and not _added(columns, names, rows):
                return None
            rows = []
        if last:
            pieces.tail = ending(text)
    try:
        columns.names.numbers([name.decode() for name in names])
    except UnicodeDecodeError:
        return None
    events = columns.done()
    return events if pieces.tail and len(events.names) == len(names) and len(events.of(*words.ON_DEVICE)) else None


def _added(columns: Gathering, names: Table[bytes], rows: list[tuple[bytes, ...]]) -> bool:
    """Whether all ROWS are as they should be."""
    categories, told, starts, lengths = zip(*rows, strict=True)
    if not all(starts):
        return False
    try:
        start, length = times(list(map(float, starts))), times(list(map(float, lengths)))
    except NotPlain:
        return False
    none = np.full(len(rows), NONE, np.int64)
    kinds = np.fromiter(map(_KINDS.__getitem__, categories), np.int8, len(rows))
    columns.add(
        category=kinds, name=names.numbers(told), thread=none, start=start, length=length,
        call=none, inside=none, shape=none,
    )  # fmt: skip
    return True


_KINDS = {category.encode(): words.CATEGORIES[category] for category in _WANTED.split("|")}
