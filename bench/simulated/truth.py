"""What the ledgers of a job say of it: what limits its steps, which lines wait and copy, what fills the memory.

Computed from the ledger and the journal of child.py alone, without a look at what torchtriage says of the same job.
Times are nanoseconds, memory bytes; a share is one of the step, from 0 to 1.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

from simulated.replay import CAUSES, Replay
from torchtriage.simulation import Allocation, Copy, Costs, Kernel, Ledger

SKIP = 4
"""The first steps, which allocate what stays and are no steady ones."""
CLEAR = 0.17
"""A cause that costs less of the step limits nothing; the pages of waits for the device begin at 0.15."""
SPARED = ("transfer", "input", "loop", "sync", "communication", "peer")
"""Causes that another program for the same computation does not have."""

Row = TypeVar("Row", Kernel, Copy)


@dataclass(frozen=True)
class Truth:
    """One rank of a job, as its ledger shows it; `bandwidth`: kernels, by name, that device memory limits."""

    ledger: Ledger
    journal: Mapping[str, Any]
    costs: Costs
    bandwidth: frozenset[str] = frozenset()

    @cached_property
    def replay(self) -> Replay:
        return Replay(self.ledger, self.journal, self.costs)

    @property
    def steps(self) -> int:
        return len(self.journal["marks"]) - 1

    @property
    def error(self) -> str | None:
        error: str | None = self.journal["error"]
        return error

    @property
    def line(self) -> int | None:
        """The innermost line of the script that the error came through."""
        line: int | None = self.journal["line"]
        return line

    @cached_property
    def gains(self) -> dict[str, float]:
        """By cause, the share of the step that is gained without it; empty for a job of a few steps."""
        if self.steps <= SKIP + 2:
            return {}
        return {cause: self.replay.gain(cause, SKIP) for cause in CAUSES}

    @cached_property
    def limit(self) -> str:
        """What limits the steps: of what could be spared, the cause that costs most, if that is CLEAR; else launches or
        kernels, whichever a step would be shorter without; `bandwidth` where device memory limits the kernels.
        """
        if not self.gains:
            return "none"
        spared = max(SPARED, key=lambda each: self.gains[each])
        if self.gains[spared] > CLEAR:
            return spared
        cause = max(("launch", "kernel"), key=lambda each: self.gains[each])
        return "bandwidth" if cause == "kernel" and self.memory_share > 0.5 else cause

    @cached_property
    def memory_share(self) -> float:
        """The share of the kernels' time that is of those that device memory limits."""
        spent: Counter[bool] = Counter()
        for each in self._steady(self.ledger.kernels):
            spent[self.is_of_memory(each)] += each.end - each.start
        return spent[True] / (sum(spent.values()) or 1)

    def is_of_memory(self, each: Kernel) -> bool:
        if each.name in self.costs.kernels:
            return each.name in self.bandwidth
        moved, computed = each.bytes / self.costs.bytes_per_second, each.flops / self.costs.flops_per_second
        return moved > computed and moved * 1e9 > self.costs.kernel

    @cached_property
    def period(self) -> float:
        """Nanoseconds of the median step, between moments at which both host and devices have done one."""
        marks = self.replay.marks()
        if len(marks) < SKIP + 2:
            return 0.0
        return float(median(b - a for a, b in pairwise(marks[SKIP:])))

    @cached_property
    def fidelity(self) -> float:
        """By how much of the whole the replay is off where the last operation ends: near 0, or nothing here holds."""
        ledger, replayed = self.ledger, self.replay.ends()
        known = max(
            (each.end for rows in (ledger.kernels, ledger.copies, ledger.collectives) for each in rows), default=0
        )
        return abs(max(replayed, default=0) - known) / (known or 1)

    def _steady(self, rows: Iterable[Row]) -> list[Row]:
        return [each for each in rows if SKIP <= each.step < self.steps]

    @cached_property
    def waits(self) -> dict[int, float]:
        """Nanoseconds a step by line of the script at which the host waits, without copies to the device."""
        return self._by_line("sync")

    @cached_property
    def transfers(self) -> dict[int, float]:
        """The same for copies to the device for which the host waits."""
        return self._by_line("transfer")

    def _by_line(self, cause: str) -> dict[int, float]:
        marks = self.journal["marks"]
        first, last = marks[min(SKIP, self.steps)], marks[-1]
        found: dict[int, float] = defaultdict(float)
        for event in self.replay.events:
            is_wait = event.cause == cause and event.stream is None
            if is_wait and event.line and first <= event.time <= last:
                found[event.line] += event.waited / max(self.steps - SKIP, 1)
        return dict(found)

    @property
    def window(self) -> tuple[int, int]:
        """From the first steady mark to the last, where host and devices have done their step."""
        marks = self.replay.marks()
        return marks[min(SKIP, self.steps)], marks[-1]

    @cached_property
    def busy(self) -> float:
        """The share of the steps in which some kernel runs on some device."""
        low, high = self.window
        return covered([(each.start, each.end) for each in self.ledger.kernels], low, high)

    @cached_property
    def loading(self) -> float:
        """The share of the steps that the host spends in naps within a loader."""
        low, high = self.window
        return covered([(nap["begun"], nap["ended"]) for nap in self.journal["naps"] if nap["loader"]], low, high)

    @cached_property
    def copying(self) -> float:
        """The share of the steps in which a copy to a device runs for which the host waits."""
        low, high = self.window
        ends = {event.time + event.waited for event in self.replay.events if event.cause == "transfer"}
        rows = [each for each in self.ledger.copies if each.kind == "host-to-device" and each.end in ends]
        return covered([(each.start, each.end) for each in rows], low, high)

    @cached_property
    def copied(self) -> float:
        """Bytes a step that are copied to the device."""
        rows = [each for each in self._steady(self.ledger.copies) if each.kind == "host-to-device"]
        return sum(each.bytes for each in rows) / max(self.steps - SKIP, 1)

    @cached_property
    def pinned(self) -> bool:
        """Whether most of the bytes that are copied to the device come from pinned memory."""
        rows = [each for each in self._steady(self.ledger.copies) if each.kind == "host-to-device"]
        return 2 * sum(each.bytes for each in rows if each.pinned) > sum(each.bytes for each in rows)

    @cached_property
    def peak(self) -> int:
        return max((each.allocated for each in self.ledger.allocations), default=0)

    @cached_property
    def resting(self) -> float:
        """The share of the peak that outlives the step: states, inputs kept, what grows."""
        rows = self.ledger.allocations
        place = max(range(len(rows)), key=lambda number: rows[number].allocated, default=0)
        alive: dict[tuple[int, int], int] = {}
        for each in rows[: place + 1]:
            _apply(alive, each)
        at_peak, step = dict(alive), rows[place].step
        for each in rows[place + 1 :]:
            if each.step > step:
                break
            if each.action == "free":
                at_peak.pop((each.device, each.address), None)
        return sum(at_peak.values()) / (sum(alive.values()) or 1)

    @cached_property
    def growth(self) -> float:
        """Bytes a step by which memory in use grows, the median of the steps: 0 where it rests."""
        ends: dict[int, int] = {}
        for each in self.ledger.allocations:
            ends[each.step] = each.allocated
        known = [ends[step] for step in sorted(ends) if SKIP <= step < self.steps]
        return float(median(b - a for a, b in pairwise(known))) if len(known) > 1 else 0.0

    @cached_property
    def out_of_memory(self) -> Allocation | None:
        return next((each for each in reversed(self.ledger.allocations) if each.action == "oom"), None)

    @cached_property
    def lateness(self) -> float:
        """Nanoseconds a step that this rank's collectives wait for other ranks."""
        marks = self.journal["marks"]
        first, last = marks[min(SKIP, self.steps)], marks[-1]
        late = sum(event.late for event in self.replay.events if first <= event.time <= last)
        return late / max(self.steps - SKIP, 1)


def covered(spans: Iterable[tuple[int, int]], low: int, high: int) -> float:
    """The share of the time from LOW to HIGH that SPANS cover together."""
    total, until = 0, low
    for start, end in sorted(spans):
        total += max(0, min(end, high) - max(start, until))
        until = max(until, min(end, high))
    return total / ((high - low) or 1)


def _apply(alive: dict[tuple[int, int], int], each: Allocation) -> None:
    if each.action == "alloc":
        alive[(each.device, each.address)] = each.bytes
    elif each.action == "free":
        alive.pop((each.device, each.address), None)


def load(folder: Path, costs: Costs, bandwidth: frozenset[str] = frozenset()) -> list[Truth]:
    """The truths of all ranks that left a ledger in FOLDER, by rank."""
    found = []
    for path in sorted(folder.glob("ledger*.json")):
        journal = json.loads((folder / path.name.replace("ledger", "journal")).read_text(encoding="utf-8"))
        found.append(Truth(Ledger.load(path), journal, costs, bandwidth))
    return found
