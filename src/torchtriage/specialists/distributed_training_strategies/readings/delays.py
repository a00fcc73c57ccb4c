"""What a late rank does that the others do not: the phases and lines in which its time goes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import median
from typing import NamedTuple

from msgspec import Struct

from torchtriage.examine.run.job.events import Stacks, Where
from torchtriage.examine.run.ranks.device_steps import device_steps, uses_device
from torchtriage.examine.run.ranks.meetings import exposed
from torchtriage.examine.run.record import RankRecord, RunRecord
from torchtriage.examine.run.series.quantiles import own_seconds

PHASES = ("data", "transfer", "forward", "backward", "optimizer")
PART = 0.2  # of the delay, from which a phase is named
LINE = 0.3  # of the delay, that a line must explain
MOSTLY = 0.5  # of the delay, that one thing which limits a device must explain
CALLS = 0.7  # of what the line explains, that one which calls it must explain too
MOST = 2  # of those
ENOUGH_SAMPLES = 10
KERNELS = "its kernels take"


class Line(Struct, frozen=True):
    """A line in which a rank stands longer than the others, and those that call it, the innermost first."""

    path: str
    number: int
    said: str
    callers: tuple[Where, ...]


class Samples(NamedTuple):
    """Stacks of a rank, and the mean seconds of the steps over which they were taken."""

    stacks: Stacks
    seconds: float

    def spent(self, rows: Sequence[tuple[str, str, int, *tuple[object, ...], int]]) -> dict[Where, float]:
        """Seconds of a step in which the rank stood in each line of ROWS, which are lines or calls of the stacks."""
        counts: Counter[Where] = Counter()
        for each in rows:
            counts[each[1], each[2]] += each[-1]
        return {where: count / self.stacks.samples * self.seconds for where, count in counts.items()}


def phases(record: RunRecord, rank: int, steps: Iterable[int]) -> str:
    """In which phases RANK is slower than the others, and by how much; "" where none stands out."""
    more = _longer(record, rank, set(steps))
    whole = sum(value for value in more.values() if value > 0)
    named = sorted((name for name, value in more.items() if value > PART * whole > 0), key=lambda name: -more[name])
    return ", ".join(f"{more[name] * 1e3:.1f} ms longer in {name}" for name in named)


def limit(record: RunRecord, rank: int, steps: Iterable[int], seconds: float) -> str:
    """What of a job on a device makes RANK so many SECONDS late: its input, copies, kernels or host; "" where none of
    them explains most of it.
    """
    chosen = set(steps)
    spent = {each.rank: _by_limit(each, chosen) for each in record.ranks}
    mine, theirs = spent.pop(rank), list(spent.values())
    if not mine or not all(theirs):
        return ""
    more = {name: mine[name] - median(each[name] for each in theirs) for name in mine}
    name = max(more, key=lambda each: more[each])
    return f"{name} {more[name] * 1e3:.1f} ms longer" if more[name] >= MOSTLY * seconds else ""


def _by_limit(record: RankRecord, steps: set[int]) -> dict[str, float]:
    """Median seconds of a step of the device, by what they are spent on; nothing where no step was timed on one."""
    rows = [each for each in record.on_device if each.at in steps]
    if not rows:
        return {}
    columns = {
        "its device waits for batches": [each.data for each in rows],
        "its copies to the device take": [each.transfer for each in rows],
        KERNELS: [each.busy or 0.0 for each in rows],
        "its device has nothing to do, since its host is slow,": [
            each.seconds - each.data - each.transfer - each.communication - (each.busy or 0.0) for each in rows
        ],
    }
    return {name: median(values) for name, values in columns.items()}


def explained(record: RunRecord, rank: int, steps: Iterable[int]) -> float:
    """Seconds of a step by which RANK is slower than the others in the phases in which it is."""
    return sum(value for value in _longer(record, rank, set(steps)).values() if value > 0)


def _longer(record: RunRecord, rank: int, steps: set[int]) -> dict[str, float]:
    """By phase, how many seconds of a step RANK takes longer than the others."""
    spent = {each.rank: _spent(each, steps) for each in record.ranks}
    mine, theirs = spent.pop(rank), list(spent.values())
    return {name: mine[name] - median(each[name] for each in theirs) for name in mine}


def line(record: RunRecord, rank: int, seconds: float) -> Line | None:
    """The line in which RANK stands longer than the others by the most, if that explains a good part of SECONDS."""
    looks = {each.rank: _first_look(each) for each in record.ranks}
    mine = looks.pop(rank)
    others = [look for look in looks.values() if look is not None]
    if mine is None or not others:
        return None
    stands = _more(mine.spent(mine.stacks.lines), [look.spent(look.stacks.lines) for look in others])
    if not stands or max(stands.values()) < LINE * seconds:
        return None
    (path, number), most = max(stands.items(), key=lambda each: each[1])
    calls = _more(mine.spent(mine.stacks.calls), [look.spent(look.stacks.calls) for look in others])
    depths = {(path, line): depth for _, path, line, _, _, depth, _ in mine.stacks.calls}
    above = [where for where, longer in calls.items() if longer >= CALLS * most and where != (path, number)]
    above.sort(key=lambda where: -depths.get(where, 0))
    said = f"{most * 1e3:.1f} ms longer than the others at {path}:{number}"
    return Line(path, number, said, tuple(above[:MOST]))


def waiting(record: RunRecord) -> Where | None:
    """The line in which ranks stand most while they wait for a collective, or else go backward."""
    for phase in ("communication", "backward"):
        counts: Counter[Where] = Counter()
        for look in filter(None, map(_first_look, record.ranks)):
            for name, path, number, _, _, count in look.stacks.lines:
                counts[path, number] += count if name == phase else 0
        if sum(counts.values()) >= ENOUGH_SAMPLES:
            return counts.most_common(1)[0][0]
    return None


def _spent(record: RankRecord, steps: set[int]) -> dict[str, float]:
    """Median seconds of a step by phase, without the end of backward that only waits."""
    waits = exposed(record)
    parts: dict[str, list[float]] = {name: [] for name in (*PHASES, "other")}
    rows = device_steps(record) if uses_device(record) else record.watched_steps
    for step in (each for each in rows if each.step in steps):
        known = {name: step.spent(name) for name in PHASES}
        rest = own_seconds(step) - sum(known.values()) - step.communication
        known["backward"] = max(known["backward"] - waits.get(step.step, 0.0), 0.0)
        for name, value in {**known, "other": max(rest, 0.0)}.items():
            parts[name].append(value)
    return {name: median(values) if values else 0.0 for name, values in parts.items()}


def _first_look(record: RankRecord) -> Samples | None:
    """The first samples of its lines."""
    stacks = next((event for event in record.all(Stacks) if event.samples), None)
    if stacks is None:
        return None
    seconds = [own_seconds(step) for step in record.watched_steps if stacks.since < step.step <= stacks.step]
    return Samples(stacks, sum(seconds) / len(seconds)) if seconds else None


def _more(mine: dict[Where, float], others: list[dict[Where, float]]) -> dict[Where, float]:
    return {where: spent - median(each.get(where, 0.0) for each in others) for where, spent in mine.items()}
