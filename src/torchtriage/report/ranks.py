"""The ranks of a job side by side, as the reports for people show them. What does not fit is left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import isfinite
from typing import Any

from msgspec import Struct

from torchtriage.core.plain import number, within
from torchtriage.examine.run.ranks.beside import WAITING
from torchtriage.report.figure import figure
from torchtriage.report.measures import PHASES
from torchtriage.report.text import count, line

SHOWN = 64
"""Ranks in a table; the case holds them all."""
SAID = 8
"""Sentences about what sets ranks apart."""


_LONGEST = 40
_LEAST = 1e-6  # seconds of a phase that is worth a column; and a five-hundredth of the longest one
TOLD = 5
"""Columns for which a telephone has room."""


BESIDE = 9
"""Columns beside which a page has room for a bar."""


class Column(Struct, frozen=True):
    """One column of the table. keep: how much it tells, from 0; a narrow paper leaves out those that tell least."""

    name: str
    cells: tuple[str, ...]
    keep: float


class Part(Struct, frozen=True):
    """A phase of a rank's step: where it starts and how much of the longest step it is, from 0 to 1."""

    phase: str
    start: float
    share: float


class Side(Struct, frozen=True):
    """The ranks of a job of several.

    columns: the first holds the ranks. marks: for each row what sets it apart in a word, or "". slower: for each row
    the seconds of a step beyond the other ranks. of: how many left a record; more than there are rows where `some`
    tells which are shown. note: how many there should be, and their steps. words: what sets ranks apart. lanes: for
    each row the phases of its step one after the other; none where there is no room for them.
    """

    columns: tuple[Column, ...]
    marks: tuple[str, ...]
    slower: tuple[float, ...]
    of: int
    some: str
    note: str
    words: tuple[str, ...]
    lanes: tuple[tuple[Part, ...], ...] = ()

    @property
    def rows(self) -> tuple[tuple[str, ...], ...]:
        """The cells of each rank."""
        return tuple(zip(*(column.cells for column in self.columns), strict=True))

    @property
    def lesser(self) -> frozenset[str]:
        """The columns that a telephone leaves out."""
        by_worth = sorted(self.columns, key=lambda column: -column.keep)
        return frozenset(column.name for column in by_worth[TOLD:])


class _Rank(Struct, frozen=True):
    """What a measurement says of one rank; seconds: by phase, and of the step; slower: seconds beyond the others."""

    rank: int
    row: dict[str, Any]
    seconds: dict[str, float]
    differs: dict[str, float]
    slower: float


def side(measurements: dict[str, Any]) -> Side | None:
    """The ranks, or None where there is one or none."""
    known = _known(within(measurements, "ranks", "each"))
    world = whole(within(measurements, "ranks", "world_size")) or len(known)
    if len(known) < 2 and (world < 2 or not known):
        return None
    shown = _shown(known, within(measurements, "ranks", "heat", "ranks"))
    words = [*_apart(known), *_late(known), *_scaling(within(measurements, "ranks", "scaling"))]
    slower = tuple(each.slower for each in shown)
    of = len(known)
    some = f"{len(shown)} of {of} ranks are shown: the slowest half, the others evenly chosen."
    some = some if len(shown) < of else ""
    note = " ".join((*_note(known, world), *_clocks(within(measurements, "ranks", "late", "clock_residual"))))
    columns = _columns(shown)
    lanes = _lanes(shown) if len(columns) <= BESIDE else ()
    return Side(columns, _marks(shown), slower, of, some, note, tuple(words), lanes)


def _known(rows: Any) -> list[_Rank]:
    listed = rows if isinstance(rows, list | tuple) else ()
    told = [_rank(row) for row in listed if isinstance(row, dict) and whole(row.get("rank")) is not None]
    return sorted(told, key=lambda each: each.rank)


def _rank(row: dict[str, Any]) -> _Rank:
    median, differs = _seconds(within(row, "step_time", "median")), _table(row.get("differs"))
    shares = {name: share for name, share in _table(row.get("shares")).items() if 0 <= share <= 1}
    phases = _table(row.get("seconds")) or ({name: share * median for name, share in shares.items()} if median else {})
    step = {"step": median} if median is not None else {}
    own = [beyond for name, beyond in differs.items() if name not in WAITING]
    return _Rank(row["rank"], row, {**phases, **step}, differs, max(own, key=abs, default=0.0))


def _shown(known: Sequence[_Rank], drawn: Any) -> Sequence[_Rank]:
    """Of many ranks those that the heat map draws, the slowest among them."""
    if len(known) <= SHOWN:
        return known
    wanted = {each for each in drawn if whole(each) is not None} if isinstance(drawn, list | tuple) else set()
    return [each for each in known if each.rank in wanted][:SHOWN] or known[:SHOWN]


def _note(known: Sequence[_Rank], world: int) -> Iterable[str]:
    if len(known) < world:
        yield f"{len(known)} of {count(world, 'rank')} left a record."
    steps = {whole(each.row.get("steps")) or 0 for each in known}
    if len(steps) == 1:
        yield f"{count(steps.pop(), 'step')} each."


def _clocks(residual: Any) -> Iterable[str]:
    """Of several hosts."""
    seconds = _seconds(residual)
    if seconds:
        yield f"The clocks of the hosts agree within {figure(seconds, 's')}."


def _lanes(rows: Sequence[_Rank]) -> tuple[tuple[Part, ...], ...]:
    phases = [{name: each.seconds[name] for name in PHASES if each.seconds.get(name)} for each in rows]
    longest = max((sum(each.values()) for each in phases), default=0.0)
    if longest < _LEAST:
        return ()
    return tuple(tuple(_parts(each, longest)) for each in phases)


def _parts(phases: dict[str, float], longest: float) -> Iterable[Part]:
    start = 0.0
    for name, seconds in phases.items():
        yield Part(name, start / longest, seconds / longest)
        start += seconds


def _columns(rows: Sequence[_Rank]) -> tuple[Column, ...]:
    longest = {name: max((each.seconds.get(name, 0.0) for each in rows), default=0.0) for name in PHASES}
    most, short = max((*longest.values(), _LEAST)), _short(rows)
    phases = [
        Column(name, tuple(_time(each.seconds.get(name)) for each in rows), 3 + longest[name] / most)
        for name in PHASES
        if longest[name] >= max(_LEAST, most / 500)
    ]
    found = [
        _column(rows, "rank", lambda each: str(each.rank), 9),
        _column(rows, "step", lambda each: _time(each.seconds.get("step")), 8),
        _column(rows, "late", lambda each: _time(_seconds(each.row.get("late"))), 7),
        *phases,
        _column(rows, "where", lambda each: _where(each, short), 2.5, differ=True),
        _column(rows, "steps", lambda each: str(whole(each.row.get("steps")) or 0), 2, differ=True),
        _column(rows, *_memory(rows), 1),
        _column(rows, "ended", _ended, 6, differ=True),
    ]
    return tuple(column for column in found if column is not None)


def _column(
    rows: Sequence[_Rank], name: str, cell: Callable[[_Rank], str], keep: float, *, differ: bool = False
) -> Column | None:
    """None where it would be empty; DIFFER: where it would say the same of every rank, too."""
    cells = tuple(map(cell, rows))
    return Column(name, cells, keep) if len(set(cells)) > differ and any(cells) else None


def _short(rows: Sequence[_Rank]) -> bool:
    """Whether the hosts are told apart by what stands before the first dot of their names."""
    hosts = {_word(each.row.get("host")) for each in rows}
    return len({host.partition(".")[0] for host in hosts}) == len(hosts)


def _where(each: _Rank, short: bool) -> str:
    """The host and the device; a processor is no device worth a word."""
    host, device = _word(each.row.get("host")), _word(each.row.get("device"))
    return " ".join(filter(None, (host.partition(".")[0] if short else host, device if device != "cpu" else "")))


def _memory(rows: Sequence[_Rank]) -> tuple[str, Callable[[_Rank], str]]:
    """That of the device where there is one, else of the host."""
    if any(_size(within(each.row, "memory", "peak")) for each in rows):
        return "device memory", lambda each: _size(within(each.row, "memory", "peak"))
    return "host memory", lambda each: _size(within(each.row, "memory", "rss"))


def _ended(each: _Rank) -> str:
    """Nothing of a rank that left as it should."""
    how = _word(each.row.get("ended"))
    return {"exit": "", "steps": "", "unknown": "no end recorded"}.get(how, how)


def _marks(rows: Sequence[_Rank]) -> tuple[str, ...]:
    """Of the two ranks that differ most, by more than noise. Ranks in step with one another take equally long."""
    slowest = max(rows, key=lambda each: each.slower, default=None)
    fastest = min(rows, key=lambda each: each.slower, default=None)
    marks = {}
    if slowest is not None and slowest.slower > 0:
        marks[id(slowest)] = "slowest" if slowest.differs.get("step", 0.0) > 0 else "waited for"
    if fastest is not None and fastest.slower < 0:
        marks[id(fastest)] = "fastest" if fastest.differs.get("step", 0.0) < 0 else "waits most"
    return tuple(marks.get(id(each), "") for each in rows)


def _apart(known: Sequence[_Rank]) -> Iterable[str]:
    """Of the ranks that take longer than the others, the slowest first."""
    slow = sorted((each for each in known if each.slower > 0), key=lambda each: -each.slower)
    other = [each.rank for each in known if each not in slow]
    whom = f"rank {other[0]}" if len(known) == 2 and other else "the median of the others"
    yield from (_sentence(each, whom) for each in slow[:SAID])
    if len(slow) > SAID:
        yield f"{count(len(slow) - SAID, 'more rank')} take longer than the others."


def _sentence(each: _Rank, whom: str) -> str:
    beyond = each.differs.get("step", 0.0)
    phases = [(name, seconds) for name, seconds in each.differs.items() if name in PHASES]
    more = sorted((item for item in phases if item[1] > 0), key=lambda item: -item[1])
    if beyond > 0:
        parts = [f", {figure(seconds, 's')} of it in {name}" for name, seconds in more[:2]]
        return f"Rank {each.rank} is {figure(beyond, 's')} slower per step than {whom}{''.join(parts)}."
    parts = [f"{figure(seconds, 's')} more per step in {name}" for name, seconds in more if name not in WAITING][:2]
    wait, less = min(phases, key=lambda item: item[1])
    rest = f", and {figure(-less, 's')} less in {wait}, where ranks wait for one another" if less < 0 else ""
    return f"Rank {each.rank} takes {' and '.join(parts)} than {whom}{rest if wait in WAITING else ''}."


def _late(known: Sequence[_Rank]) -> Iterable[str]:
    """Who comes last to the first collective of a step, where that is a tenth of the step or more."""
    told = [(late, each) for each in known if (late := _seconds(each.row.get("late"))) is not None]
    late, last = max(told, key=lambda item: item[0], default=(0.0, None))
    if last is not None and late >= 0.1 * last.seconds.get("step", 0.0) and late > 0:
        yield f"Rank {last.rank} comes {figure(late, 's')} late to the first collective of a step (median)."


def _scaling(told: Any) -> Iterable[str]:
    share, ranks = finite(within(told, "efficiency")), whole(within(told, "ranks"))
    together = finite(within(told, "samples_per_second"))
    alone = finite(within(told, "baseline_samples_per_second"))
    if None not in (share, ranks, together, alone):
        rates = f"{figure(together or 0.0)} samples per second on {ranks} ranks, {figure(alone or 0.0)} on one process"
        yield f"Scaling efficiency {figure(share or 0.0, 'share')}: {rates}."


def _table(value: Any) -> dict[str, float]:
    """The finite figures of VALUE by name."""
    told = value.items() if isinstance(value, dict) else ()
    return {str(name): seconds for name, each in told if (seconds := finite(each)) is not None}


def finite(value: Any) -> float | None:
    told = number(value)
    return told if told is not None and isfinite(told) else None


def _seconds(value: Any) -> float | None:
    told = finite(value)
    return told if told is not None and told >= 0 else None


def whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1e15 else None


def _word(value: Any) -> str:
    word = line(value) if isinstance(value, str) else ""
    return word if len(word) <= _LONGEST else f"{word[: _LONGEST - 1]}…"


def _time(seconds: float | None) -> str:
    return "" if seconds is None else figure(seconds, "s")


def _size(value: Any) -> str:
    size = _seconds(value)
    return figure(size, "bytes") if size else ""
