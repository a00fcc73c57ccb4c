"""What a snapshot shows, in numbers and stacks: made in the process that took the pickle apart, and small."""

from __future__ import annotations

from typing import Any

import numpy as np

from torchtriage.examine.artefact.snapshot.columns import ALLOC, FREE, OOM, RELEASE, RESERVE, Column, History, Marks
from torchtriage.examine.artefact.snapshot.layout import Layout, gaps, segments_at, whole
from torchtriage.examine.artefact.snapshot.stacks import OTHERS, Stacks

POINTS = 400
"""Of the timeline."""
GROUPS = 300
"""Stacks of what is alive at the peak that are told one by one."""
LOOKED = 200_000
"""Blocks, the largest, whose stacks are looked at."""
OLD = 200
"""Entries after which a block that is alive is more than an operation's passing result."""
LAYERS, DRAWN = 40, 20_000
"""Stacks of what is alive at the peak whose course is told, as far as the largest so many allocations make it."""
SAMPLES = 2000
"""Allocations whose stacks are told in the order of time."""
MANY = 8
"""Blocks of one stack, at least, that are still alive: fewer are no growth."""


def summarise(loaded: Any, size: int) -> dict[str, Any]:
    """{"devices": …, "frames": …, "stacks": …, "settings": …, "steps": …} of what torch.cuda.memory._snapshot returned.

    SIZE: of the pickle in bytes. Raises ValueError for what is no snapshot, and for one that says more than so many
    bytes can hold.
    """
    if not isinstance(loaded, dict) or not isinstance(loaded.get("segments"), list):
        raise ValueError("a pickle, but no memory snapshot: it has no segments")
    traces = [each for each in loaded.get("device_traces") or [] if isinstance(each, list)]
    segments = [each for each in loaded["segments"] if isinstance(each, dict)]
    held = sum(map(len, traces)) + len(segments) + sum(len(each.get("blocks") or ()) for each in segments)
    if held > size:
        raise ValueError(f"{held:,} entries and blocks in {size:,} bytes: the same ones over and over")
    stacks = Stacks()
    numbers = sorted({*range(len(traces)), *(whole(each.get("device")) for each in segments)})
    devices = [
        _device(number, traces[number] if number < len(traces) else [], _of(segments, number), stacks)
        for number in numbers[:256]
    ]
    used = [each for each in devices if each["reserved"] or each["entries"]]
    settings = loaded.get("allocator_settings")
    told = {"devices": used, "frames": stacks.frames, "stacks": stacks.rows}
    return {**told, "settings": _settings(settings), "steps": _steps(loaded)}


def _of(segments: list[dict[str, Any]], device: int) -> list[dict[str, Any]]:
    return [each for each in segments if whole(each.get("device")) == device]


def _settings(told: Any) -> dict[str, str]:
    rows = told.items() if isinstance(told, dict) else ()
    return {str(name)[:100]: str(value)[:200] for name, value in rows if isinstance(value, bool | int | float | str)}


def _steps(loaded: dict[str, Any]) -> int:
    """Training steps by the marks that a profiler left in the snapshot; 0 where none did."""
    marks = loaded.get("external_annotations")
    names = [
        str(each.get("name"))[:100]
        for each in (marks if isinstance(marks, list) else ())
        if isinstance(each, dict) and each.get("stage") == "START"
    ]
    counts = [sum(name.startswith(kind) for name in names) for kind in ("ProfilerStep#", "Optimizer.step#")]
    return next((count for count in counts if count), 0)


def _device(number: int, trace: list[Any], segments: list[dict[str, Any]], stacks: Stacks) -> dict[str, Any]:
    history, layout = History(trace), Layout(segments)
    reserved = layout.reserved + _back(history.moved(RESERVE, RELEASE))
    untouched = ~np.isin(layout.addr, history.addr[history.alive(history.rows - 1)])
    before = int(history.size[history.before].sum() + layout.size[untouched].sum())
    used = before + history.moved(ALLOC, FREE)
    failed = np.flatnonzero(history.action == OOM)
    row = int(failed[-1]) if len(failed) else int(np.argmax(used)) if len(used) else -1
    state = _State(trace, history, layout, untouched, stacks)
    return {
        "device": number, "entries": history.rows, "segments": len(segments), "reserved": layout.reserved,
        "used": int(layout.size.sum()), "before": before, "seconds": _seconds(history),
        "peak": int(used.max()) if len(used) else int(layout.size.sum()),
        "most_reserved": int(reserved.max()) if len(reserved) else layout.reserved,
        "row": row, "at": state.at(row, used, reserved),
        "free": dict(zip(("bytes", "blocks", "largest"), gaps(layout.segments, layout.addr, layout.size), strict=True)),
        "failed": [state.failure(int(each), used, reserved) for each in failed[-3:]],
        "kept": state.kept(), "sampled": state.sampled(), "timeline": _timeline(history, used, reserved),
        "layers": state.layers(row, _moments(history, used)),
    }  # fmt: skip


def _back(moved: Column) -> Column:
    """MOVED so that it ends at 0."""
    return moved - moved[-1] if len(moved) else moved


def _seconds(history: History) -> float:
    told = history.time[history.time > 0]
    return float(told[-1] - told[0]) / 1e6 if len(told) and told[-1] > told[0] else 0.0


class _State:
    """A device at one row of its history."""

    def __init__(self, trace: list[Any], history: History, layout: Layout, untouched: Marks, stacks: Stacks) -> None:
        self._trace, self._history, self._layout, self._stacks = trace, history, layout, stacks
        self._untouched = untouched

    def at(self, row: int, used: Column, reserved: Column) -> dict[str, Any]:
        """What is alive after ROW, by stack."""
        groups: dict[tuple[int, int], list[int]] = {}
        alive = self._history.alive(row)
        largest = alive[np.argsort(-self._history.size[alive], kind="stable")][:LOOKED]
        for born in largest.tolist():
            end, size = int(self._history.ends[born]), int(self._history.size[born])
            freed = self._number(end) if end < self._history.rows else -1
            _add(groups, (self._number(born), freed), size, end >= self._history.rows, row - born > OLD)
        for at in np.flatnonzero(self._untouched).tolist():
            _add(groups, (self._stacks.number(self._layout.frames[at]), -1), int(self._layout.size[at]), True, True)
        told = sorted(groups.items(), key=lambda item: (-item[1][0], item[0]))[:GROUPS]
        later = self._history.before[self._history.before > row]
        return {
            "used": int(used[row]) if row >= 0 else int(self._layout.size.sum()),
            "reserved": int(reserved[row]) if row >= 0 else self._layout.reserved,
            "unrecorded": int(self._history.size[later].sum()),
            "groups": [
                {"stack": stack, "freed": freed, "bytes": row[0], "blocks": row[1], "kept": row[2], "old": row[3]}
                for (stack, freed), row in told
            ],
        }  # fmt: skip

    def failure(self, row: int, used: Column, reserved: Column) -> dict[str, Any]:
        """The allocation that failed at ROW. largest: of the free pieces then; -1 where that cannot be told."""
        segments = segments_at(self._layout, self._history, row)
        free = self._trace[row].get("device_free")
        alive, later = self._history.alive(row), self._history.before[self._history.before > row]
        rows = np.concatenate((alive, later))
        addr = np.concatenate((self._history.addr[rows], self._layout.addr[self._untouched]))
        size = np.concatenate((self._history.size[rows], self._layout.size[self._untouched]))
        loose = gaps(segments, addr, size) if segments is not None else (-1, -1, -1)
        return {
            "row": row, "size": int(self._history.size[row]), "device_free": whole(free), "stack": self._number(row),
            "used": int(used[row]), "reserved": int(reserved[row]), "blocks": loose[1], "largest": loose[2],
            "after": int((self._history.action[row:] == ALLOC).sum()),
        }  # fmt: skip

    def kept(self) -> list[dict[str, Any]]:
        """What was allocated within the history and is alive at its end, by stack; births by thirds of the history."""
        births: dict[int, list[int]] = {}
        for born in self._history.alive(self._history.rows - 1).tolist()[:LOOKED]:
            births.setdefault(self._number(born), []).append(born)
        rows = [_births(stack, born, self._history) for stack, born in births.items() if len(born) >= MANY]
        return sorted(rows, key=lambda row: (-row["bytes"], row["stack"]))[:GROUPS]

    def sampled(self) -> list[int]:
        """The stacks of allocations from all over the history, in its order: one of each so many, never in step."""
        rows = np.flatnonzero(self._history.action == ALLOC)
        each = max(len(rows) // SAMPLES, 1)
        spread = np.arange(len(rows) // each)
        return [self._number(row) for row in rows[spread * each + spread * 2_654_435_761 % each].tolist()]

    def layers(self, row: int, moments: Column) -> list[dict[str, Any]]:
        """What the stacks that hold most at ROW hold at each of MOMENTS, the one with most first."""
        history, layout = self._history, self._layout
        born = np.flatnonzero(history.action == ALLOC)
        born = born[np.argpartition(-history.size[born], DRAWN)[:DRAWN]] if len(born) > DRAWN else born
        stacks = np.array([self._number(each) for each in born.tolist()], np.int64)
        lasting = np.flatnonzero(self._untouched)[:DRAWN]
        theirs = np.array([self._stacks.number(layout.frames[each]) for each in lasting.tolist()], np.int64)
        alive = (born <= row) & (history.ends[born] > row)
        held = np.zeros(len(self._stacks.rows), np.int64)
        np.add.at(held, stacks[alive], history.size[born[alive]])
        np.add.at(held, theirs, layout.size[lasting])
        held[: OTHERS + 1] = 0
        most = np.argsort(-held, kind="stable")[:LAYERS]
        told = [(int(stack), born[stacks == stack], int(layout.size[lasting[theirs == stack]].sum())) for stack in most]
        return [
            {"stack": stack, "bytes": (_held(history, rows, moments) + constant).tolist()}
            for stack, rows, constant in told
            if held[stack]
        ]

    def _number(self, row: int) -> int:
        return self._stacks.number(self._trace[row].get("frames"))


def _held(history: History, born: Column, moments: Column) -> Column:
    """Bytes of the allocations BORN that are alive after each of MOMENTS."""
    begun = np.cumsum(np.concatenate(([0], history.size[np.sort(born)])))
    order = np.argsort(history.ends[born], kind="stable")
    ended = np.cumsum(np.concatenate(([0], history.size[born[order]])))
    first, last = np.sort(born), history.ends[born][order]
    held: Column = begun[np.searchsorted(first, moments, "right")] - ended[np.searchsorted(last, moments, "right")]
    return held


def _add(groups: dict[tuple[int, int], list[int]], key: tuple[int, int], size: int, kept: bool, old: bool) -> None:
    row = groups.setdefault(key, [0, 0, 0, 0])
    row[0], row[1], row[2], row[3] = row[0] + size, row[1] + 1, row[2] + size * kept, row[3] + size * old


def _births(stack: int, born: list[int], history: History) -> dict[str, Any]:
    rows = np.array(born)
    parts = np.bincount(rows * 8 // max(history.rows, 1), minlength=8)[:8]
    sizes = np.bincount(rows * 8 // max(history.rows, 1), history.size[rows], minlength=8)[:8]
    return {
        "stack": stack, "bytes": int(history.size[rows].sum()), "blocks": len(born), "first": born[0],
        "last": born[-1], "parts": parts.tolist(), "part_bytes": sizes.astype(np.int64).tolist(),
    }  # fmt: skip


def _timeline(history: History, used: Column, reserved: Column) -> dict[str, list[float]]:
    """Columns of equal length: entry, seconds since the first, the most bytes in use and reserved since the last."""
    if not history.rows:
        return {"entry": [], "seconds": [], "used": [], "reserved": []}
    edges = _edges(history)
    since = np.maximum(history.time[edges] - history.time[0], 0) / 1e6
    peaks = ((name, np.maximum.reduceat(each, edges)) for name, each in (("used", used), ("reserved", reserved)))
    return {
        "entry": edges.tolist(),
        "seconds": since.round(6).tolist(),
        **{name: each.tolist() for name, each in peaks},
    }


def _edges(history: History) -> Column:
    """Where each part of the history begins."""
    return np.unique(np.linspace(0, history.rows, POINTS + 1).astype(np.int64)[:-1])


def _moments(history: History, used: Column) -> Column:
    """In each part of the history the row after which most was in use."""
    edges = _edges(history)
    parts = zip(edges.tolist(), [*edges[1:].tolist(), history.rows], strict=True) if history.rows else ()
    return np.array([begin + int(np.argmax(used[begin:end])) for begin, end in parts], np.int64)


_FRAMES = [{"filename": "train.py", "line": 1, "name": "step"}]
_BLOCK = {"size": 512, "requested_size": 512, "state": "active_allocated", "frames": _FRAMES}
SAMPLE = {
    "segments": [{"device": 0, "address": 0, "total_size": 4096, "blocks": [_BLOCK]}],
    "device_traces": [
        [
            {"action": action, "addr": 512 * at, "size": 512, "frames": _FRAMES, "time_us": 1}
            for at, action in enumerate(("segment_alloc", *["alloc"] * MANY, "free_completed", "oom"))
        ]
    ],
}
"""A snapshot in which all of it is looked at."""
