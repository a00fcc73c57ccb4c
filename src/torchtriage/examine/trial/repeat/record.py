"""What one leg has written about its steps, read back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from torchtriage.examine.run.job.events import ProbeOff, ProbesFailed
from torchtriage.examine.run.lines import Row, rows
from torchtriage.examine.run.record import Log
from torchtriage.examine.trial.repeat.job.events import Conditions, Elsewhere

SOURCES = ("torch", "random", "numpy", "cuda")
_SETTLED = 5  # steps after which times are taken


class Item(NamedTuple):
    """One mark. kind: "init", "batch", "in", "mid", "out", "aside", "loss", "grad", "reduced", "hyper", "held",
    "param" or "buffer", as the job's side says; name: of the part; mark: None where it has none.
    """

    kind: str
    name: str
    mark: int | None


@dataclass(frozen=True)
class Step:
    """One step: what came before an update, in order, and the update. turns: of optimizers, first and last.

    whole: it has come to its end. states: of the generators when it began, by name, as far as they are known.
    """

    number: int
    items: tuple[Item, ...]
    turns: tuple[int, int]
    seconds: float
    whole: bool
    states: dict[str, int | None]


@dataclass(frozen=True)
class Prints:
    """The steps of one rank in one leg. full: so much was written that the rest was left out. ended: it came to the
    end of its program. loose: no optimizer steps, so that a step is seen to end when the next backward begins.
    """

    rank: int
    steps: tuple[Step, ...]
    operations: tuple[Row, ...] = ()
    rows: tuple[Row, ...] = ()
    full: bool = False
    ended: bool = False
    loose: bool = False

    @property
    def count(self) -> int:
        """Steps that have come to their end."""
        return sum(step.whole for step in self.steps)

    @property
    def seconds(self) -> float | None:
        """Of a step, the median without the first ones; None for a few steps."""
        times = [step.seconds for step in self.steps if step.whole]
        times = times[_SETTLED:] if len(times) > 2 * _SETTLED else times[1:]
        return median(times) if times else None

    @property
    def marks(self) -> int:
        return sum(len(step.items) for step in self.steps)


@dataclass(frozen=True)
class Told:
    """All that one leg has left. sources: who asked for time, entropy, seeds; conditions: threads and the like."""

    ranks: tuple[Prints, ...]
    sources: tuple[Row, ...] = ()
    conditions: Row = field(default_factory=dict)
    lost: tuple[str, ...] = ()  # probes that failed, and why
    threads: bool = False  # another thread has trained beside the one that was watched

    @cached_property
    def by_rank(self) -> dict[int, Prints]:
        return {each.rank: each for each in self.ranks}


def read(folder: Path) -> Told:
    """What lies in the record of a leg; nothing where it has trained nothing."""
    ranks = tuple(_prints(path) for path in sorted(folder.glob("prints*.jsonl")) if path.stem[6:].isdigit())
    log = Log(tuple(row for path in sorted(folder.glob("rank*.jsonl")) for row in _lines(path)))
    conditions = {name: value for each in log.all(Conditions) for name, value in vars(each).items()}
    failed = Log(tuple(_lines(folder / "processes.jsonl"))).all(ProbesFailed)
    lost = [*(each.why for each in log.all(ProbeOff)), *(each.why for each in failed)]
    return Told(ranks, tuple(_lines(folder / "sources.jsonl")), conditions, tuple(lost), log.has(Elsewhere))


def turns(folder: Path) -> int:
    """How many turns have been written so far by the rank that has written the fewest; 0 before the first."""
    counts = [path.read_bytes().count(b'{"kind":"turn"') for path in folder.glob("prints*.jsonl")]
    return min(counts, default=0)


def _lines(path: Path) -> list[Row]:
    if not path.is_file():
        return []
    with path.open("rb") as file:
        return list(rows(file))


def _prints(path: Path) -> Prints:
    lines = _lines(path)
    operations = tuple(line for line in lines if line.get("kind") == "op")
    rows = tuple(line for line in lines if line.get("kind") == "rows")
    full = any(line.get("kind") == "full" for line in lines)
    ended = any(line.get("kind") == "end" for line in lines)
    loose = not any(line["by"] >= 0 for line in lines if line.get("kind") == "turn")
    return Prints(int(path.stem[6:]), tuple(_steps(lines)), operations, rows, full, ended, loose)


def _steps(lines: Sequence[Row]) -> Iterator[Step]:
    """Turns put together to steps: one ends with the turn of the optimizer that closes it."""
    closers = _closers([line["by"] for line in lines if line.get("kind") == "turn"])
    names: list[tuple[str, str]] = []
    at: list[int] = []
    items: list[Item] = []
    states = next((_states(line) for line in lines if line.get("kind") == "begin"), {})
    number, first, seconds = 1, 0, 0.0
    for line in lines:
        if line.get("kind") == "names":
            names += [(kind, name) for kind, name in line["names"]]
        if line.get("kind") != "turn":
            continue
        at = line.get("at", at)
        items += [Item(*names[place], mark) for place, mark in zip(at, line["marks"], strict=True)]
        seconds += line["seconds"]
        if line["by"] in closers or line["by"] == -2:
            whole = line["by"] in closers
            yield Step(number, tuple(items), (first, line["turn"]), seconds, whole, states)
            number, first, items, seconds, states = number + 1, line["turn"] + 1, [], 0.0, _states(line)


def _states(line: Row) -> dict[str, int | None]:
    return dict(zip(SOURCES, line.get("rng") or (), strict=False))


def _closers(by: Sequence[int]) -> set[int]:
    """Of optimizers that take turns the one that comes last, else the one that steps most often; of those that follow
    upon one another each.
    """
    if not any(number >= 0 for number in by):
        return {-1}
    spans: list[tuple[int, set[int]]] = []  # the last turn of optimizers that take turns, and which they are
    for number in dict.fromkeys(number for number in by if number >= 0):
        begin, end = by.index(number), len(by) - 1 - by[::-1].index(number)
        if spans and begin < spans[-1][0]:
            last, known = spans.pop()
            spans.append((max(last, end), known | {number}))
        else:
            spans.append((end, {number}))
    counts = Counter(by)
    return {_closer({number: counts[number] for number in sorted(known)}) for _, known in spans}


def _closer(counts: dict[int, int]) -> int:
    most = max(counts.values())
    alike = [number for number, count in counts.items() if most - count <= 1]  # in the order of their first turns
    return alike[-1] if len(alike) == len(counts) else next(n for n, count in counts.items() if count == most)


def flat(step: Step, *kinds: str) -> dict[tuple[str, str], list[Any]]:
    """The marks of some kinds by what they belong to, in order."""
    found: dict[tuple[str, str], list[Any]] = {}
    for item in step.items:
        if item.kind in kinds:
            found.setdefault((item.kind, item.name), []).append(item.mark)
    return found
