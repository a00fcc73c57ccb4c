"""How far a trace is whole: findings rest on such steps alone, and on as many as tell a habit from a beginning."""

from __future__ import annotations

import numpy as np

from torchtriage.examine.artefact.trace import device as on_device
from torchtriage.examine.artefact.trace import words
from torchtriage.examine.artefact.trace.device import Device
from torchtriage.examine.artefact.trace.events import Events
from torchtriage.examine.artefact.trace.rank import UNMARKED
from torchtriage.examine.artefact.trace.steps import Steps, steps


def whole(events: Events) -> tuple[Events, int]:
    """Of a trace that breaks off, the EVENTS of the steps that are known to be whole, and how many those are.

    All events where no step is.
    """
    device = Device(events)
    windows = steps(events, device.rows, on_device.host(events, device).launched)
    host = reached(events, words.OPERATOR, words.CALL)
    count = _count(windows, host, reached(events, *words.ON_DEVICE) if len(device.rows) else host)
    return (until(events, int(windows.end[count - 1])), count) if count else (events, 0)


def marked(windows: Steps) -> int:
    """How many steps a trace has that does not break off."""
    numbers = windows.number
    return UNMARKED if len(numbers) == 1 and numbers[0] < 0 else len(numbers)


def reached(events: Events, *kinds: int) -> int:
    """The time up to which every event of KINDS was read; below all times where that is not told.

    They stand in the file in the order of time, or nearly so: what stands out of order by so much may be missing by as
    much.
    """
    start = events.start[events.of(*kinds)]
    if not len(start):
        return int(np.iinfo(np.int64).min)
    latest = np.maximum.accumulate(start)
    return int(latest[-1] - (latest - start).max())


def until(events: Events, time: int) -> Events:
    """The EVENTS that begin before TIME."""
    rows = np.flatnonzero(events.start < time)
    number = {int(row): at for at, row in enumerate(rows.tolist())}
    columns = ("category", "name", "thread", "start", "length", "call", "inside", "shape")
    return Events(
        **{name: getattr(events, name)[rows] for name in columns},
        names=events.names,
        threads=events.threads,
        shapes=events.shapes,
        collectives={number[row]: each for row, each in events.collectives.items() if row in number},
        copied={number[row]: each for row, each in events.copied.items() if row in number},
    )


def _count(windows: Steps, host: int, device: int) -> int:
    """The leading steps that end on the host before HOST and on the device before DEVICE."""
    ended = (windows.number >= 0) & (windows.until <= host) & (windows.end <= device)
    return int(np.argmin(ended)) if not ended.all() else len(ended)
