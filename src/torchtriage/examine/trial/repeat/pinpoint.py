"""The second look: of all operations of one step, the first that gives something else for the same, and matters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torchtriage.examine.run.lines import Row
from torchtriage.examine.trial.repeat.compare import RESULTS
from torchtriage.examine.trial.repeat.record import Prints, flat

_CANDIDATES = 200  # origins that are followed


@dataclass(frozen=True)
class Origin:
    """The operation from which a difference spreads.

    how: "random" where it draws from a generator, "kernel" where it gives something else for the same numbers,
    "outside" where what it is given has come from no operation of torch. part: forward, backward or update. early: no
    model had been called in the step.
    """

    op: str
    how: str
    part: str
    module: str | None
    path: str
    line: int
    early: bool = False


def origin(one: Prints, other: Prints, turns: tuple[int, int]) -> Origin | None:
    """The first operation of the step with these TURNS whose difference reaches a result; None where none does."""
    begin = turns[0] - one.loose
    mine = [each for each in one.operations if begin <= each["turn"] <= turns[1]]
    theirs = [each for each in other.operations if begin <= each["turn"] <= turns[1]]
    results = _results(one, other, turns)
    if not results:
        return None
    length = next((i for i, (a, b) in enumerate(zip(mine, theirs, strict=False)) if a["op"] != b["op"]), None)
    pairs = list(zip(mine[:length], theirs[:length], strict=False))
    apart: set[int] = set()  # marks that an operation has given, and that differ
    tried = 0
    for place, (a, b) in enumerate(pairs):
        how = _how(a, b, apart)
        apart |= {m for m, n in zip(a["gave"], b["gave"], strict=False) if m != n and m is not None}
        if how is None:
            continue
        tried += 1
        if tried > _CANDIDATES:
            return None
        if _reaches(pairs[place:], results):
            early = not a["calls"] and any(each["calls"] for each in mine)
            own = a["op"].removeprefix("aten.")
            return Origin(own, how, a.get("part", "forward"), a["module"], a["path"], a["line"], early)
    return None


def _results(one: Prints, other: Prints, turns: tuple[int, int]) -> set[int]:
    """The marks of results of the step that differ."""
    steps = [next((s for s in each.steps if s.turns == turns), None) for each in (one, other)]
    if steps[0] is None or steps[1] is None:
        return set()
    ours, others = flat(steps[0], *RESULTS), flat(steps[1], *RESULTS)
    return {
        m
        for key in ours.keys() & others.keys()
        for m, n in zip(ours[key], others[key], strict=False)
        if m != n and m is not None
    }


def _how(a: Row, b: Row, apart: set[int]) -> str | None:
    """Whether a difference begins at this operation, and how; None where it only goes on, or there is none."""
    given = [m for m, n in zip(a["got"], b["got"], strict=False) if m != n]
    new = [m for m in given if m not in apart]
    if a["gave"] == b["gave"]:
        return None
    if not given and a["numbers"] == b["numbers"]:
        return "random" if a.get("random") else "kernel"
    if a.get("random") and (len(new) == len(given)):
        return "random"
    return "outside" if len(new) == len(given) else None


def _read(a: Row, b: Row) -> set[int]:
    """The memory of what an operation is given, where that differs: what has been written over since does not."""
    memory = a.get("of") or ()
    return {place for place, m, n in zip(memory, a["got"], b["got"], strict=False) if m != n}


def _reaches(pairs: Sequence[tuple[Row, Row]], results: set[int]) -> bool:
    """Whether what the first operation gives ends in one of RESULTS: followed by marks, and by memory written into."""
    tainted: set[int] = set()
    memory: set[int] = set()
    for number, (a, b) in enumerate(pairs):
        if number and not (tainted & set(a["got"]) or memory & _read(a, b)):
            continue
        tainted |= {m for m, n in zip(a["gave"], b["gave"], strict=False) if m != n and m is not None}
        memory |= set(a.get("into") or ())
        if tainted & results:
            return True
    return False
