"""bench/mutants/harm.jsonl: what the runs of healthy programs and mutants measured, one line for each.

The key of a line is the hash of the files that ran, of how they are run and judged, and of the version of torch. The
runs are stored, not the answers: criterion and tables are computed from them anew each time.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

import msgspec

from mutants import harm
from mutants.catalogue import Mutant
from mutants.harm import Limits, Measured
from mutants.programs import Program

FILE = Path(__file__).parent / "harm.jsonl"


@dataclass(frozen=True)
class Line:
    """The runs of one mutant, of a healthy program, or of one that cannot learn."""

    key: str
    name: str  # PROGRAM/OPERATOR, PROGRAM/healthy or PROGRAM/untrained
    torch: str
    runs: tuple[Measured, ...]


class Store:
    """The lines by name; a line that is written later takes the place of an earlier one."""

    def __init__(self, path: Path = FILE) -> None:
        self.path = path
        self.lines = _lines(path.read_text(encoding="utf-8")) if path.exists() else {}

    def get(self, name: str, key: str) -> Line | None:
        """What was measured of NAME, if that was of the files that KEY is of."""
        found = self.lines.get(name)
        return found if found and found.key == key else None

    def add(self, line: Line) -> None:
        self.lines[line.name] = line
        with self._locked() as file:
            file.seek(0, os.SEEK_END)
            file.write(_text(line) + "\n")

    def tidy(self) -> None:
        """Rewrites the file: one line for each name, in the order of names."""
        with self._locked() as file:
            self.lines = _lines(file.read())  # another process may have appended since
            file.seek(0)
            file.truncate()
            file.writelines(_text(self.lines[name]) + "\n" for name in sorted(self.lines))

    @contextmanager
    def _locked(self) -> Iterator[TextIO]:
        """The file, for this process alone: several may measure at once."""
        self.path.touch()
        with self.path.open("r+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file
            file.flush()


def _text(line: Line) -> str:
    runs = [{name: value for name, value in asdict(run).items() if value is not None} for run in line.runs]
    for run in runs:
        run.update({name: str(value) for name, value in run.items() if not math.isfinite(value)})
    return json.dumps({"name": line.name, "key": line.key, "torch": line.torch, "runs": runs})


def _lines(text: str) -> dict[str, Line]:
    return {line.name: line for line in map(_line, map(json.loads, text.splitlines()))}


def _line(row: dict[str, Any]) -> Line:
    runs = msgspec.convert(row["runs"], tuple[Measured, ...], strict=False)  # what is not finite is a string
    return Line(row["key"], row["name"], row["torch"], runs)


@dataclass(frozen=True)
class Control:
    """What a program does when nothing is wrong with it: limits, and the control runs that are judged by them."""

    limits: Limits
    runs: tuple[Measured, ...]

    def bad(self, shows: frozenset[str]) -> int:
        return sum(bool(harm.bad(run, self.limits, shows)) for run in self.judged(shows))

    def judged(self, shows: frozenset[str]) -> list[Measured]:
        """The control runs; those that were resumed, too, where it is resuming that may do harm."""
        return [run for run in self.runs if "resume" not in shows or run.resume_code is not None] or list(self.runs)


def control(store: Store, program: Program) -> Control | None:
    """From the lines of a program and of it untrained, if both were measured."""
    healthy, untrained = store.lines.get(f"{program.name}/healthy"), store.lines.get(f"{program.name}/untrained")
    if healthy is None or untrained is None:
        return None
    calibration = [run for run in healthy.runs if run.seed in harm.CALIBRATION]
    runs = tuple(run for run in healthy.runs if run.seed in harm.CONTROL)
    return Control(Limits.of(calibration, untrained.runs), runs)


@dataclass(frozen=True)
class Hurt:
    """The answer for one mutant: whether it hurts, by which of its runs' harms, with the probability."""

    hurts: bool | None
    harm: str
    bad: int
    done: int
    p: float


def answer(runs: Iterable[Measured], mutant: Mutant, healthy: Control) -> Hurt:
    runs = list(runs)
    shows = mutant.operator.shows
    harms = [harm.bad(run, healthy.limits, shows) for run in runs]
    bad, wrong = sum(map(bool, harms)), healthy.bad(shows)
    named = [each[0] for each in harms if each]
    first = max(sorted(set(named)), key=named.count) if named else ""
    of = len(healthy.judged(shows))
    p = harm.fisher(bad, len(runs), wrong, of) if runs else 1.0
    return Hurt(harm.verdict(bad, len(runs), wrong, of), first, bad, len(runs), p)
