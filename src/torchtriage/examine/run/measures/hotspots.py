"""What of a step is the user's own code: shares of functions and lines, from samples of the thread that trains.

The computing of a model is not counted: what a line of the user's waits for in a module, a loss or an operator of torch
during forward and backward, and what every training has to call. Pure arithmetic on the events "stacks".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from math import sqrt
from typing import Any

from msgspec import Struct

from torchtriage.examine.run.job.events import Stacks
from torchtriage.examine.run.record import RankRecord
from torchtriage.examine.run.series.quantiles import own_seconds, thinned
from torchtriage.examine.run.series.ratio import ratio

Frame = tuple[str, int, str]  # file, line, function
Where = tuple[str, int]
Function = tuple[str, str]  # file, name

LEARNING = ("forward", "loss", "backward", "optimizer")  # parts of a step in which a line may be the model's own
PHASES = ("data", "transfer", "forward", "backward", "optimizer", "communication")
OF_PHASE = {"loss": "other", "evaluation": "forward"}
ENOUGH_LOOKS = 20
ENOUGH_STEPS = 10
ROWS = 2000  # of a long run, that are enough for a share
INTERPRETED = 0.1  # of looks, from which a line is Python and no operator
NODE = 30e-6  # seconds between two nodes of autograd, below which operators are too small to be computing
LEAST = 0.010  # seconds of a step, that lines within the model must take: the same page defends it
NESTED = 0.8  # of a function's time, from which one that it calls stands for it
WORTH = 0.02  # of a step, from which a line explains time that is in no phase
MOST = 5  # lines in the report
SHOWN = ("<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>")


class Look(Struct, frozen=True):
    """Some looks at one stack, and the seconds they stand for. frames: the innermost first; the phase calls WITHIN."""

    part: str
    inside: str
    interpreted: bool
    within: int
    frames: tuple[Frame, ...]
    number: int
    seconds: float

    @property
    def phase(self) -> str:
        return OF_PHASE.get(self.part, self.part)


class Share(Struct, frozen=True):
    """A share of the step with its interval, and the looks that it is from."""

    share: float
    low: float
    high: float
    looks: int


class Hotspot(Struct, frozen=True):
    """A line, or a function with its most frequent line, and its share of the step.

    function: as the user would say it; "" for a file's own code. callers: the nearest lines that call it.
    """

    path: str
    line: int
    function: str
    part: str
    of: Share
    callers: tuple[Where, ...] = ()

    @property
    def named(self) -> str:
        """`get_batch` (data.py:41)."""
        where = f"{self.path}:{self.line}"
        return f"`{self.function}` ({where})" if self.function else where


class Samples:
    """The samples of one rank over its steady steps."""

    def __init__(self, record: RankRecord) -> None:
        self.record = record
        self.on_device = any(row.allocated for row in record.steps)
        self.rows = [row for row in (record.on_device if self.on_device else record.steps) if row.seconds]
        events = [event for event in record.recent(Stacks) if event.stacks]
        odd = {row.step for row in record.every_step} - {row.step for row in record.steps}
        self.looks = tuple(look for event in events for look in _looks(event, odd))
        self.around = {(path, _name(function)) for event in events for path, function in event.around}
        self.functional = 2 * sum(bool(row.forwards) for row in record.steps) < len(record.steps)
        self.evaluated = sum(event.evaluated for event in events)
        self.again = sum(event.again for event in events), len(events)
        self.nodes = max((event.nodes for event in events), default=0.0)

    @property
    def enough(self) -> bool:
        return len(self.rows) >= ENOUGH_STEPS and sum(look.number for look in self.looks) >= ENOUGH_LOOKS

    @cached_property
    def waited(self) -> float:
        """The share of the time for which the thread waited for a CPU."""
        rows = self.record.steps
        whole, waited = (sum(row.spent(name) for row in rows) for name in ("seconds", "queued"))
        return min(waited / whole, 1.0) if whole else 0.0

    @cached_property
    def step(self) -> float:
        """Seconds of a step without the probes and without the wait for a CPU."""
        rows = self.record.steps
        return (1.0 - self.waited) * sum(map(own_seconds, rows)) / max(len(rows), 1)

    @cached_property
    def _columns(self) -> dict[str, list[float]]:
        rows = thinned(self.rows, ROWS)
        columns = {phase: [row.spent(phase) for row in rows] for phase in PHASES}
        whole = [max(own_seconds(row), 1e-9) for row in rows]
        known = [sum(each) for each in zip(*columns.values(), strict=True)]
        rest = [max(each - told, 0.0) for each, told in zip(whole, known, strict=True)]
        return {**columns, "other": rest, "step": whole}

    @cached_property
    def _phases(self) -> dict[str, tuple[float, float, float]]:
        """The share of each phase with its interval; what it is in the second half of the run bounds it from above."""
        wholes, half = self._columns["step"], len(self._columns["step"]) // 2
        found = {}
        for phase, spent in self._columns.items():
            share, (low, high) = ratio(spent, wholes)
            late = sum(spent[half:]) / sum(wholes[half:])
            found[phase] = min(share, late), min(low, late), high
        return found

    def share(self, looks: Iterable[Look]) -> Share:
        """The share of the step in which LOOKS stood: over all steps, by what the clock says of the phases, and over
        those that were sampled, without the wait for a CPU; the lower one counts.
        """
        chosen = list(looks)
        window = _wilson(chosen, self.looks)
        told = [0.0, 0.0, 0.0]
        for phase in {look.phase for look in chosen}:
            parts = _wilson(*([look for look in group if look.phase == phase] for group in (chosen, self.looks)))
            for at, part in enumerate(parts):
                told[at] += part * self._phases.get(phase, (0.0, 0.0, 0.0))[at]
        share, low = min(window[0], told[0]), min(window[1], told[1])
        high = min(max(window[2], told[2], share), 1.0)
        return Share(share, min(low, share), high, sum(each.number for each in chosen))

    def own(self) -> list[Look]:
        """The looks at which the user's own code ran, or may have."""
        return [look for look in self.looks if self._kind(look)]

    def of_loading(self) -> list[Look]:
        """Those of them at what a DataLoader calls in the process that trains."""
        return [look for look in self.own() if look.phase == "data"]

    def _kind(self, look: Look) -> str:
        """own; "maybe", where it may be the model that computes; or "" for what is not the user's."""
        if look.part == "data":
            kind = "own" if look.within else ""
        elif look.part == "other" and not self.functional:
            kind = "own" if look.inside != "training" else ""
        elif look.part in (*LEARNING, "other"):
            called = look.within or look.part in ("loss", "other")
            kind = "maybe" if called and not look.inside else ""
        else:
            kind = ""
        if self.on_device:  # a line that waits for the device looks like one that works
            return "maybe" if kind == "own" else ""
        return kind

    def certain(self, looks: Sequence[Look]) -> list[Look]:
        """LOOKS without those that may be at the model's operators, unless they show Python or very small operators."""
        maybe = [look for look in looks if self._kind(look) == "maybe"]
        number = sum(look.number for look in maybe)
        python = sum(look.number for look in maybe if look.interpreted) >= INTERPRETED * number
        if number and (python or self._small) and self.share(maybe).share * self.step >= LEAST:
            return list(looks)
        return [look for look in looks if self._kind(look) == "own"]

    @cached_property
    def _small(self) -> bool:
        """Whether operators that learn are so small that it is their number that takes the time."""
        if self.on_device or not self.nodes:
            return False
        parts = ("forward", "loss", "other") if self.functional else ("forward", "loss")
        learning = [look for look in self.looks if look.part in parts]
        return self.share(learning).share * self.step / self.nodes < NODE


def lines(samples: Samples) -> list[Hotspot]:
    """The lines of the user's own code that take most of a step, at most MOST."""
    inner: dict[Function, list[Look]] = {}
    for look in samples.own():
        path, _, function = look.frames[0]
        inner.setdefault((path, _name(function)), []).append(look)
    groups: dict[tuple[Function, int], list[Look]] = {}
    for name, looks in inner.items():
        for look in samples.certain(looks):
            groups.setdefault((name, look.frames[0][1]), []).append(look)
    found = [
        Hotspot(path, line, _said(function), _part(looks), samples.share(looks))
        for ((path, function), line), looks in groups.items()
    ]
    found.sort(key=lambda each: (-each.of.share, each.path, each.line))
    return [each for each in found if each.of.share > 0][:MOST]


def functions(samples: Samples, looks: Sequence[Look], least: float) -> list[Hotspot]:
    """The functions of the user's in which LOOKS spend LEAST of the step or more, apart from each other: the innermost
    one that explains nearly as much. Of a function that holds the loop of the training, its own lines count.
    """
    found: list[Hotspot] = []
    rest = list(looks)
    while rest and len(found) < MOST:
        groups = {name: samples.certain(group) for name, group in _by_function(samples, rest).items()}
        shares = {name: samples.share(group) for name, group in groups.items() if group}
        most = max(shares, key=lambda name: (shares[name].share, name), default=None)
        if most is None or shares[most].share < least:
            break
        if most not in samples.around:
            whole, enough = set(groups[most]), NESTED * shares[most].share
            nested = [name for name in shares if shares[name].share >= enough and whole.issuperset(groups[name])]
            most = min(nested, key=lambda name: (shares[name].share, -_depth(groups[name], name)))
        found.append(_hotspot(most, groups[most], shares[most]))
        taken = set(groups[most])
        rest = [look for look in rest if look not in taken]
    return found


def evaluation(samples: Samples) -> Hotspot | None:
    """Where a model that learns is evaluated on the same batch in each step; None where it is not."""
    again, times = samples.again
    if samples.evaluated < 4 + times or again < 0.9 * (samples.evaluated - times):
        return None
    passes = [look for look in samples.looks if look.part == "evaluation"]
    groups = _by_function(samples, passes)
    if not groups:
        return None
    shares = {name: samples.share(group) for name, group in groups.items()}
    top = max(share.share for share in shares.values())
    inner = [name for name in shares if shares[name].share >= NESTED * top]
    name = min(inner, key=lambda each: (shares[each].share, -_depth(groups[each], each)))
    if name in samples.around:
        return _hotspot(name, groups[name], shares[name])
    every = _by_function(samples, samples.looks)[name]
    return _hotspot(name, every, samples.share(every), groups[name])


def making(event: Stacks) -> list[Look]:
    """The looks at a worker while it made a batch."""
    return [look for look in _looks(event, set()) if look.part == "data" and look.within]


def top(looks: Sequence[Look]) -> tuple[Function, int, float] | None:
    """The innermost function that most of LOOKS are in, with its line and its part of them; None where they are few."""
    whole = sum(look.seconds for look in looks)
    if sum(look.number for look in looks) < ENOUGH_LOOKS or not whole:
        return None
    groups: dict[Function, list[Look]] = {}
    for look in looks:
        for name in {(path, _name(function)) for path, _, function in look.frames[: look.within]}:
            groups.setdefault(name, []).append(look)
    spent = {name: sum(look.seconds for look in group) for name, group in groups.items()}
    most = max(spent.values())
    name = min((n for n in spent if spent[n] >= NESTED * most), key=lambda n: (spent[n], -_depth(groups[n], n)))
    spot = _hotspot(name, groups[name], Share(0.0, 0.0, 0.0, 0))
    return (spot.path, spot.function), spot.line, spent[name] / whole


def unexplained(samples: Samples, other: float) -> float:
    """The share of a step in no phase, OTHER, without that on lines which take a noticeable part of it."""
    if not samples.enough:
        return other
    groups: dict[Where, list[Look]] = {}
    for look in samples.looks:
        if look.phase == "other":
            groups.setdefault(look.frames[0][:2], []).append(look)
    whole = sum(look.seconds for group in groups.values() for look in group)
    known = [sum(look.seconds for look in group) for group in groups.values() if samples.share(group).share >= WORTH]
    return other * (1.0 - sum(known) / whole) if whole else other


def _looks(event: Stacks, odd: set[Any]) -> Iterable[Look]:
    frames = [(str(path), int(line), str(function)) for path, line, function in event.frames]
    for step, part, inside, interpreted, within, numbers, number, nanoseconds in event.stacks:
        if step not in odd and numbers:
            stack = tuple(frames[at] for at in numbers)
            yield Look(part, inside, bool(interpreted), within, stack, number, nanoseconds / 1e9)


def _wilson(chosen: Sequence[Look], of: Sequence[Look]) -> tuple[float, float, float]:
    """The share of seconds with its 95 % interval (Wilson), for as many looks as weights as uneven are worth (Kish)."""
    whole = sum(look.seconds for look in of)
    squares = sum(look.seconds**2 / look.number for look in of)
    if not whole or not squares:
        return 0.0, 0.0, 1.0
    share, number, z = min(sum(look.seconds for look in chosen) / whole, 1.0), whole**2 / squares, 1.96
    middle, scale = share + z * z / (2 * number), 1 + z * z / number
    half = z * sqrt(share * (1 - share) / number + z * z / (4 * number * number))
    return share, max((middle - half) / scale, 0.0), min((middle + half) / scale, 1.0)


def _by_function(samples: Samples, looks: Iterable[Look]) -> dict[Function, list[Look]]:
    """LOOKS by each function of the user's that they are in below the loop; else by the loop's function."""
    groups: dict[Function, list[Look]] = {}
    for look in looks:
        below: list[Function] = []
        for path, _, function in look.frames:
            name = path, _name(function)
            if name in samples.around:
                below = below or [name]
                break
            below.append(name)
        for name in dict.fromkeys(below):
            groups.setdefault(name, []).append(look)
    return groups


def _hotspot(name: Function, looks: Sequence[Look], share: Share, at: Sequence[Look] = ()) -> Hotspot:
    """AT: the looks that tell the line, where these are not all."""
    counts: Counter[int] = Counter()
    callers: Counter[Where] = Counter()
    for look in at or looks:
        place = next(at for at, (path, _, function) in enumerate(look.frames) if (path, _name(function)) == name)
        counts[look.frames[place][1]] += round(look.seconds * 1e6)
        outer = [each for each in look.frames[place + 1 :] if (each[0], _name(each[2])) != name]
        if outer:
            callers[outer[0][:2]] += look.number
    return Hotspot(
        name[0],
        counts.most_common(1)[0][0],
        _said(name[1]),
        _part(looks),
        share,
        tuple(where for where, _ in callers.most_common(1)),
    )


def _depth(looks: Sequence[Look], name: Function) -> int:
    """How far from the outermost frame NAME stands."""
    look = looks[0]
    return len(look.frames) - next(i for i, (path, _, fn) in enumerate(look.frames) if (path, _name(fn)) == name)


def _part(looks: Sequence[Look]) -> str:
    spent: Counter[str] = Counter()
    for look in looks:
        spent[look.phase] += round(look.seconds * 1e6)
    return spent.most_common(1)[0][0]


def _name(function: str) -> str:
    """A comprehension belongs to the function that it is written in."""
    parts = function.split(".")
    while parts and parts[-1] in (*SHOWN, "<locals>"):
        parts.pop()
    return ".".join(parts) or "<module>"


def _said(function: str) -> str:
    last = function.rpartition("<locals>.")[2]
    return "" if last == "<module>" else last
