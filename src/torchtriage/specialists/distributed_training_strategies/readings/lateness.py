"""Which rank, or which machine, comes late to the collectives of every step, by the traces of all ranks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from statistics import median

from torchtriage.core.evidence import Place
from torchtriage.examine.artefact.trace.rank import StepOf
from torchtriage.examine.artefact.trace.traces import Traces
from torchtriage.examine.detector import CannotSee, Sighting, detector
from torchtriage.specialists.distributed_training_strategies.readings import links

LEAST = 500_000  # nanoseconds of a step: straggler.md says why
MOST = 0.7  # of the steps, in which a straggler is late
OWN = 0.5  # of the lateness that a rank must have lost by itself where several groups of ranks meet
MANY = 8  # ranks from which on the median of the others is that of all
CAUSES = {
    "input": "waiting for its data",
    "host": "code of the host between operators",
    "launch": "launching kernels",
    "sync": "waiting for its device before it queues more",
    "compute": "computing",
    "memcpy": "copying",
    "optimizer": "its optimizer",
    "communication": "other collectives",
    "other": "work that was queued and not begun",
}


@detector("trace/straggler")
def straggler(traces: Traces) -> Iterator[Sighting]:
    """One rank, or one machine, comes late to the first collective of a step, and the others wait for it."""
    known = _Late(traces)
    own = [rank for rank in known.late if known.is_its_own(rank)]
    if known.late and not own and not links.slow(traces):
        shown = ", ".join(map(str, known.late[:MANY])) + (" and more" if len(known.late) > MANY else "")
        why = f"{len(known.late)} ranks come late to a collective ({shown}), none by what it did ahead of its first one"
        raise CannotSee(f"{why} in a step", "Lay their traces side by side, from one collective to the next.")
    for machine, ranks in _by_machine(traces, known, own):
        worst = max(ranks, key=lambda rank: (median(known.by_rank[rank]), -rank))
        yield _sighting(traces, known, worst, ranks, machine)


class _Late:
    """How late each rank came, nanoseconds. by_rank: in each step, in order. late: the ranks that are so in most."""

    def __init__(self, traces: Traces) -> None:
        self.traces, self.by_rank = traces, _by_rank(traces)
        self.residual = traces.clocks.residual or 0
        self.late = [rank for rank, late in self.by_rank.items() if self._is_late(late)]

    def _is_late(self, late: Sequence[int]) -> bool:
        share = sum(each > LEAST for each in late) / len(late)
        return median(late) >= max(LEAST, 3 * self.residual) and share >= MOST

    @cached_property
    def ahead(self) -> dict[int, dict[str, float]]:
        """What each rank did ahead of the first collective of a step, by phase."""
        return {number: _ahead(each.steps) for number, each in self.traces.by_number.items()}

    @cached_property
    def usual(self) -> dict[str, float]:
        phases = dict.fromkeys(phase for each in self.ahead.values() for phase in each)
        return {phase: median(each.get(phase, 0.0) for each in self.ahead.values()) for phase in phases}

    @cached_property
    def is_one_group(self) -> bool:
        return all(len({each.group for each in told.met}) < 2 for told in self.traces.ranks)

    def more(self, rank: int) -> dict[str, float]:
        """By how much RANK needs longer than the others, by phase, ahead of the first collective of a step."""
        own = self.ahead[rank]
        if len(self.ahead) >= MANY:
            return {phase: time - self.usual[phase] for phase, time in own.items()}
        others = [each for number, each in self.ahead.items() if number != rank]
        return {phase: time - median(each.get(phase, 0.0) for each in others) for phase, time in own.items()}

    def is_its_own(self, rank: int) -> bool:
        """Whether RANK lost the time itself: among several groups, who waits in one is late for the next."""
        return self.is_one_group or sum(self.more(rank).values()) >= OWN * median(self.by_rank[rank])


def _by_rank(traces: Traces) -> dict[int, list[int]]:
    steps = sorted({each.step for each in traces.arrivals})
    counted = set(steps[1:] if len(steps) > 3 else steps)
    found: dict[int, dict[int, int]] = {}
    for arrival in traces.arrivals:
        for rank in arrival.begins if arrival.step in counted else ():
            late, mine = arrival.late(rank), found.setdefault(rank, {})
            mine[arrival.step] = max(mine.get(arrival.step, late), late)
    return {rank: sorted(mine.values()) for rank, mine in sorted(found.items()) if len(mine) == len(counted)}


def _ahead(steps: Sequence[StepOf]) -> dict[str, float]:
    steady = [step.ahead for step in steps if step.ahead]
    steady = steady[1:] if len(steady) > 3 else steady
    phases = dict.fromkeys(phase for ahead in steady for phase in ahead)
    return {phase: median(ahead.get(phase, 0) for ahead in steady) for phase in phases}


def _by_machine(traces: Traces, known: _Late, own: Sequence[int]) -> Iterator[tuple[str, list[int]]]:
    """The ranks OWN, those of a machine together where all of it are late, beside others that are not."""
    of = traces.machines
    everyone: dict[str, list[int]] = {}
    for rank in known.by_rank:
        everyone.setdefault(of.get(rank, ""), []).append(rank)
    told = set()
    for rank in own:
        beside = everyone[of.get(rank, "")] if rank in of else [rank]
        is_whole = 1 < len(beside) < len(known.by_rank) and set(beside) <= set(own)
        if is_whole and beside[0] not in told:
            told |= set(beside)
            yield of[rank], beside
        elif not is_whole:
            yield "", [rank]


def _sighting(traces: Traces, known: _Late, rank: int, ranks: Sequence[int], machine: str) -> Sighting:
    late, told = known.by_rank[rank], traces.of(rank)
    step = median(each.length for each in told.steps)
    low, high = (late[0], late[-1]) if len(late) < 8 else (late[len(late) // 8], late[-1 - len(late) // 8])
    share = sum(each > LEAST for each in late) / len(late)
    fact = (
        f"{_who(known, rank, ranks, machine)} later than half of the others to the first collective of "
        f"a step, in {share:.0%} of {len(late)} steps: {median(late) / step:.0%} of a step of {step / 1e6:.1f} ms; "
        f"the clocks agree to {known.residual / 1e6:.2f} ms{_phase(known, rank)}{_beside(traces, known, rank, machine)}"
    )
    return Sighting(
        Place(path=told.path, rank=rank), fact, median(late) / step, "of the step", (low / step, high / step)
    )


def _who(known: _Late, rank: int, ranks: Sequence[int], machine: str) -> str:
    most = median(known.by_rank[rank]) / 1e6
    if not machine:
        return f"rank {rank} comes {most:.1f} ms"
    least = min(median(known.by_rank[each]) for each in ranks) / 1e6
    return f"all {len(ranks)} ranks of {machine} come {least:.1f} to {most:.1f} ms (rank {rank})"


def _phase(known: _Late, rank: int) -> str:
    """The phase in which RANK needs longer than the others before that collective."""
    more, late = known.more(rank), median(known.by_rank[rank])
    phase = max(more, key=lambda each: more[each], default="")
    if not phase or more[phase] < 0.3 * late:
        return ""
    return f"; {min(more[phase] / late, 1.0):.0%} of that is {CAUSES.get(phase, phase)}"


def _beside(traces: Traces, known: _Late, rank: int, machine: str) -> str:
    """Whether others on its machine are late."""
    of = traces.machines
    beside = [each for each in known.by_rank if each != rank and rank in of and of.get(each) == of[rank]]
    if machine or not beside or len(beside) + 1 == len(known.by_rank):
        return ""
    late = set(known.late) & set(beside)
    if not late:
        return f"; others on {of[rank]} are not"
    is_for_it = not any(known.is_its_own(each) for each in late)
    return f"; others on {of[rank]} {'come late because they wait for it' if is_for_it else 'come late, too'}"
