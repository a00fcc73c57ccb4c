"""One file becomes what is kept of it."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchtriage.examine.artefact.opened import Opened, Unreadable
from torchtriage.examine.artefact.trace import device as on_device
from torchtriage.examine.artefact.trace import host as on_host
from torchtriage.examine.artefact.trace import meetings, tables, words
from torchtriage.examine.artefact.trace.device import LATENCY, Device
from torchtriage.examine.artefact.trace.events import Events, Numbers
from torchtriage.examine.artefact.trace.rank import LETTERS, NAMELESS, STEPS, Met, RankSummary, StepOf
from torchtriage.examine.artefact.trace.steps import Steps, steps
from torchtriage.examine.artefact.trace.whole import marked, whole
from torchtriage.examine.artefact.trace.wire import Read, decode

_DEVICE = re.compile(r"mtia|xpu|hpu|npu|privateuse|gpu|kernel|runtime", re.I)
_RANK = re.compile(r"rank[_\-.]?(\d{1,6})", re.I)
_HANDLER = re.compile(r"(.+)_\d+\.\d+\.pt\.trace\.json")  # torch.profiler.tensorboard_trace_handler: host_pid.time


def summary(path: str) -> RankSummary:
    """The trace at PATH. Raises Unreadable where it cannot be opened, or holds no list of events."""
    with Opened(path) as file:
        read = decode(file.read)
        broken, size = file.broken, file.given
    if not read.found:
        raise Unreadable("there is no list of traceEvents in it", "Name a trace that torch.profiler has exported.")
    return _summed(path, read, broken, size)


def _summed(path: str, read: Read, broken: str, size: int) -> RankSummary:
    told, is_broken = Told(path, read.fields), bool(broken) or read.broken is not None
    events, count = whole(read.events) if is_broken else (read.events, 0)
    device = Device(events)
    known = on_device.host(events, device)
    windows = steps(events, device.rows, known.launched)
    windows, count = (windows.first(count), count) if is_broken else (windows, marked(windows))
    spent = _spent(events, device, known, windows.begin, windows.end)
    rows = device.collectives if len(device.rows) else on_host.collectives(events)
    all_met = meetings.met(events, rows, windows, windows.of(_asked(events, device, known, rows)))
    kernels = device.kernels
    return RankSummary(
        path=path,
        rank=told.rank,
        world=told.world,
        host=told.host,
        device=told.device if len(device.rows) else None,
        base=told.base,
        events=read.seen,
        bytes=size,
        count=len(windows.begin),
        total={phase: int(each.sum()) for phase, each in spent.items()},
        length=int((windows.end - windows.begin).sum()),
        steps=_steps(windows, spent, _ahead(events, device, known, windows, all_met)),
        met=meetings.thinned(all_met),
        groups=meetings.groups(events),
        kernels=tables.kernels(events, kernels),
        kernel_count=len(kernels),
        kernel_time=int(events.length[kernels].sum()),
        short=int((events.length[kernels] < LATENCY).sum()),
        communicating=int((device.communicating[1] - device.communicating[0]).sum()),
        operators=tables.operators(events, events.of(words.OPERATOR)),
        shapes=tables.shapes(events, kernels),
        waits=tables.waits(events) if len(device.rows) else (),
        copies=tables.copies(device),
        unseen=None
        if len(device.rows)
        else _unseen(told, read.further, is_broken and bool(len(events.of(words.CALL)))),
        whole=count,
        odd=read.odd.counts,
        broken=None if read.broken is None and not broken else (read.broken or size, broken or _ENDED),
    )


def _unseen(told: Told, further: tuple[str, ...], was_called: bool) -> str | None:
    """What else worked, in a trace without kernels. WAS_CALLED: the host did, and the trace breaks off before them."""
    strange = [name for name in further if _DEVICE.search(name)]
    if strange:
        return f"an accelerator whose events ({', '.join(strange)[:LETTERS]}) are not read"
    if was_called and not told.devices:
        return "a device, whose work stood behind the break"
    return f"{told.device}, of which no work was recorded" if told.devices else None


_ENDED = "the list of events ends before its end"


def _spent(events: Events, device: Device, known: on_device.Host, begins: Numbers, ends: Numbers) -> dict[str, Numbers]:
    """Nanoseconds of each window by phase."""
    if not len(device.rows):
        return on_host.worked(events, begins, ends)
    return {**on_device.worked(device, begins, ends), **on_device.idled(device, known, begins, ends)}


def _asked(events: Events, device: Device, known: on_device.Host, rows: NDArray[np.intp]) -> Numbers:
    """When the host asked for the collectives in ROWS: a device that lags behind still works for the step before."""
    if not len(device.rows):
        return events.start[rows]
    by_row = dict(zip(device.rows.tolist(), known.launched.tolist(), strict=True)) if len(rows) else {}
    launched = np.array([by_row[row] for row in rows.tolist()], np.int64)
    return np.where(launched < 0, events.start[rows], launched)


def _ahead(
    events: Events, device: Device, known: on_device.Host, windows: Steps, all_met: list[Met]
) -> dict[int, dict[str, int]]:
    """For each step, by its number, what was done between the collective before its first one and that."""
    firsts: dict[int, tuple[int, int]] = {}
    reached = int(windows.begin[0]) if len(windows.begin) else 0
    for each in all_met:
        if each.step not in firsts:
            firsts[each.step] = (min(reached, each.begin), each.begin)
        reached = max(reached, each.end)
    begins, ends = (np.array([pair[side] for pair in firsts.values()], np.int64) for side in (0, 1))
    spent = _spent(events, device, known, begins, ends)
    return {step: {phase: int(each[row]) for phase, each in spent.items()} for row, step in enumerate(firsts)}


def _steps(windows: Steps, spent: dict[str, Numbers], ahead: dict[int, dict[str, int]]) -> tuple[StepOf, ...]:
    """At most STEPS of them, the same on every rank."""
    skip = 1
    while len(windows.number) > skip * STEPS:
        skip *= 2
    numbers = windows.number.tolist()
    return tuple(
        StepOf(
            number,
            int(windows.begin[row]),
            int(windows.end[row] - windows.begin[row]),
            {phase: int(each[row]) for phase, each in spent.items()},
            ahead.get(number, {}),
        )
        for row, number in enumerate(numbers)
        if number % skip == 0 or skip == 1
    )


class Told:
    """What a trace says about itself, as far as it is what it should be."""

    def __init__(self, path: str, fields: dict[str, Any]) -> None:
        self.fields = fields
        job, devices = self._of("distributedInfo", dict), self._of("deviceProperties", list)
        name = PurePath(path).name
        named, handled = _RANK.search(name), _HANDLER.match(name)
        counted = _count(job.get("rank"))
        self.rank = counted if counted is not None else int(named[1]) if named else None
        self.world = _count(job.get("world_size")) or 1
        host = fields.get("host_name") or (handled[1] if handled else None)
        self.host = str(host)[:80] if host else None
        self.devices = len(devices)
        first = devices[0] if devices and isinstance(devices[0], dict) else {}
        self.device = str(first.get("name") or NAMELESS)[:80]
        self.base = _count(fields.get("baseTimeNanoseconds")) or 0

    def _of(self, key: str, kind: type[Any]) -> Any:
        value = self.fields.get(key)
        return value if isinstance(value, kind) else kind()


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**62 else None
