"""Jobs with planted faults and healthy ones, what each must show, and how near a report comes to it."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import sqrt
from pathlib import Path

from processes import NAME

from torchtriage.core.case import Case
from torchtriage.core.evidence import Place
from torchtriage.core.fault import Severity
from torchtriage.core.finding import Finding

CASES = Path(__file__).parent.parent / "tests/cases"
MARK = re.compile(
    r"# expect: (?P<slug>[a-z0-9-]+)(?: step \d+)?(?: rank (?P<rank>\d+))?(?: module (?P<module>\S+))?"
    r"(?: container (?P<container>\S+))?"
)
HEAD = re.compile(r"^# (ranks|exits|hang): (\d+)$", re.MULTILINE)
WRAPPERS = re.compile(r"^(?:(?:module|_orig_mod)\.)+")


@dataclass(frozen=True)
class Spot:
    """Where an expert would point: any of the lines (from 1), the module or the container is exact, on the rank that
    is named, if one is; where nothing but a rank is named, that is exact.
    """

    lines: tuple[int, ...] = ()
    module: str | None = None
    container: str | None = None
    rank: int | None = None

    def __bool__(self) -> bool:
        return bool(self.lines or self.module or self.container or self.rank is not None)


@dataclass(frozen=True)
class Job:
    """A script, the faults planted in it by slug with their spots, and what may be said beside them.

    exit: the code with which it ends unwatched. ranks: how many processes torchrun starts; 0 for a plain script.
    hang: the seconds after which a job that stands still is judged and ended; 0 for one that goes on.
    """

    id: str
    script: str
    planted: dict[str, Spot]
    also: frozenset[str] = frozenset()
    exit: int = 0
    ranks: int = 0
    hang: int = 0


@dataclass(frozen=True)
class Judged:
    """One run against what its job should show; `case` is None when no case was left."""

    job: Job
    case: Case | None
    code: int | None
    seconds: float

    @property
    def found(self) -> frozenset[str]:
        """The planted slugs among the findings."""
        return frozenset(each.fault.slug for each in self.findings) & frozenset(self.job.planted)

    @property
    def findings(self) -> tuple[Finding, ...]:
        return self.case.findings if self.case else ()

    @property
    def false(self) -> tuple[Finding, ...]:
        """What is said above info, and is neither planted nor its consequence."""
        fine = frozenset(self.job.planted) | self.job.also
        loud = (each for each in self.findings if each.fault.severity is not Severity.INFO)
        return tuple(each for each in loud if each.fault.slug not in fine)

    @property
    def is_right(self) -> bool:
        return self.case is not None and self.found == frozenset(self.job.planted) and not self.false

    @property
    def is_placed(self) -> bool:
        """Every planted fault that has a spot is found there."""
        spots = {slug: spot for slug, spot in self.job.planted.items() if spot}
        places = [(each.fault.slug, item.place) for each in self.findings for item in each.evidence]
        return bool(spots) and all(any(slug == said and exact(place, spot, self.job.script) for said, place in places)
                   for slug, spot in spots.items())  # fmt: skip

    @property
    def ended(self) -> str:
        """What happened when the job did not end as it does unwatched, else nothing."""
        if self.code is None:
            return "ran out of time"
        if self.code != self.job.exit and not self.job.ranks:  # a launcher has codes of its own
            return f"ended with {self.code}, not {self.job.exit}"
        return "" if self.case else "left no case"


def read(paths: Iterable[Path], kind: str = "run") -> list[Job]:
    """The jobs of PATHS (JSON lines), or without any the marked scripts of this repository: "run" or "ranks"."""
    paths = list(paths)
    if not paths:
        return [marked(path.stem, path.read_text(encoding="utf-8")) for path in sorted(CASES.glob(f"{kind}/*.py"))]
    lines = (line for path in paths for line in path.read_text(encoding="utf-8").splitlines())
    return [held(line) for line in lines if line.strip()]


def marked(name: str, script: str) -> Job:
    """A script whose faults are marked by "# expect: SLUG [step N] [rank R] [module X] [container Y]"."""
    marks = ((number, MARK.search(line)) for number, line in enumerate(script.splitlines(), start=1))
    planted = {
        mark["slug"]: Spot((line,), mark["module"], mark["container"], int(mark["rank"]) if mark["rank"] else None)
        for line, mark in marks
        if mark
    }
    head = {name: int(value) for name, value in HEAD.findall(script)}
    return Job(name, script, planted, frozenset(), head.get("exits", 0), head.get("ranks", 0), head.get("hang", 0))


def held(line: str) -> Job:
    """One line {"id", "faults", "place", "lines", "also", "exit", "ranks", "hang", "script"}; "lines" may also stand in
    "place", beside "rank".
    """
    row = json.loads(line)
    place = row.get("place") or {}
    lines = [place.get("line"), *(row.get("lines") or ()), *(place.get("lines") or ())]
    spot = Spot(tuple(each for each in lines if each), place.get("module"), place.get("container"), place.get("rank"))
    planted, also = dict.fromkeys(row["faults"], spot), frozenset(row.get("also") or ())
    numbers = (row.get(name) or 0 for name in ("exit", "ranks", "hang"))
    return Job(row["id"], row["script"], planted, also, *numbers)


def exact(place: Place, spot: Spot, script: str) -> bool:
    """Whether PLACE is the SPOT: within the statement of one of its lines, its module or its container."""
    if spot.rank is not None and place.rank != spot.rank:
        return False
    if not (spot.lines or spot.module or spot.container):
        return True
    if spot.container and place.container == spot.container:
        return True
    if spot.module and place.module and WRAPPERS.sub("", place.module) == WRAPPERS.sub("", spot.module):
        return True
    if place.line is None or (place.path and Path(place.path).name != NAME):
        return False
    return any(place.line in statement(script, line) for line in spot.lines)


def statement(script: str, line: int) -> range:
    """The lines of the innermost statement on LINE; of one that holds others, those before its body."""
    spans = [span for span in _spans(ast.parse(script)) if line in span]
    return min(spans, key=len, default=range(line, line + 1))


def _spans(tree: ast.Module) -> Iterator[range]:
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            last = body[0].lineno - 1 if body else node.end_lineno or node.lineno
            yield range(node.lineno, max(last, node.lineno) + 1)


def share(right: int, of: int, z: float = 1.96) -> str:
    """A share with its Wilson interval at 95 %."""
    if not of:
        return "   -"
    part, norm = right / of, 1 + z * z / of
    centre, half = part + z * z / (2 * of), z * sqrt(part * (1 - part) / of + z * z / (4 * of * of))
    low, high = (centre - half) / norm, (centre + half) / norm
    return f"{right:4d}/{of:<4d} {100 * part:5.1f} %   [{100 * abs(low):.0f}–{100 * high:.0f}]"
