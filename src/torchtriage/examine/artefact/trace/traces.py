"""The traces of a job's ranks, side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from torchtriage.core.evidence import Inconclusive
from torchtriage.examine.artefact.trace import clocks
from torchtriage.examine.artefact.trace.clocks import Arrival, Clocks, Transfer
from torchtriage.examine.artefact.trace.fewer import fewer
from torchtriage.examine.artefact.trace.folded import folded
from torchtriage.examine.artefact.trace.machines import machines
from torchtriage.examine.artefact.trace.rank import FEWEST, UNMARKED, RankSummary
from torchtriage.examine.detector import CannotSee, Sighting, view

NAME = "trace/record"
_RECORD = "Record five to ten steady steps: schedule(wait=1, warmup=1, active=6), and prof.step() in the loop."


@dataclass(frozen=True)
class Traces:
    """All ranks by number. arrivals, transfers: of the collectives that several ranks tell of."""

    ranks: tuple[RankSummary, ...]
    numbers: tuple[int, ...]
    clocks: Clocks
    arrivals: tuple[Arrival, ...] = ()
    transfers: tuple[Transfer, ...] = ()
    inconclusive: tuple[Inconclusive, ...] = ()
    taken: dict[type, tuple[Any, ...]] = field(default_factory=dict, compare=False, repr=False)

    @property
    def world(self) -> int:
        """How many ranks the job had, as far as its traces tell."""
        return max(
            (max(each.world, number + 1) for each, number in zip(self.ranks, self.numbers, strict=True)), default=0
        )

    @cached_property
    def by_number(self) -> dict[int, RankSummary]:
        return dict(zip(self.numbers, self.ranks, strict=True))

    @cached_property
    def machines(self) -> dict[int, str]:
        """What to call the machine of each rank, as far as there is anything to go by."""
        return machines(tuple(self.by_number.items()))

    def of(self, number: int) -> RankSummary:
        return self.by_number[number]

    def folded(self, sightings: list[Sighting]) -> list[Sighting]:
        return folded(sightings)


@view(Traces, of=Traces)
def _whole(traces: Traces) -> Iterable[Traces]:
    if not traces.ranks:
        return _nothing(traces)
    common = set.intersection(*({step.number for step in each.steps} for each in traces.ranks))
    if len(common) < FEWEST and any(each.whole != UNMARKED for each in traces.ranks):
        raise CannotSee(
            f"the traces have {len(common)} whole steps in common: too few to find anything in them", _RECORD
        )
    return [traces]


@view(RankSummary, of=Traces)
def _by_rank(traces: Traces) -> Iterable[RankSummary]:
    return [each for each in traces.ranks if each.count and not each.unseen and not _few(each)] or _nothing(traces)


def _few(told: RankSummary) -> bool:
    return told.whole != UNMARKED and told.whole < FEWEST


def _nothing(traces: Traces) -> Iterable[Any]:
    why = next(iter(traces.inconclusive), Inconclusive(NAME, "no trace holds events that last", "Record ten steps."))
    raise CannotSee(why.why, why.unblock)


def together(summaries: Sequence[RankSummary], unread: Sequence[Inconclusive] = ()) -> Traces:
    """One noun of what was read rank by rank, in whatever process."""
    numbered, doubts = _numbered(summaries)
    aligned = clocks.clocks(numbered)
    met = clocks.together(numbered, aligned).values()
    ranks, numbers = tuple(each for _, each in numbered), tuple(number for number, _ in numbered)
    said = (*fewer(item for each in ranks for item in _of_one(each)), *fewer(doubts), *_of_all(numbered, aligned))
    return Traces(ranks, numbers, aligned, clocks.arrivals(met), clocks.transfers(met), (*unread, *said))


def _numbered(summaries: Sequence[RankSummary]) -> tuple[list[tuple[int, RankSummary]], list[Inconclusive]]:
    """By rank; of several traces of one rank the one with the most steps."""
    best: dict[int, RankSummary] = {}
    doubts = []
    nameless = [each for each in summaries if each.rank is None]
    for each in sorted(summaries, key=lambda each: (-each.count, each.path)):
        if each.rank is not None:
            best.setdefault(each.rank, each)
    again = Counter(each.rank for each in summaries if each.rank is not None)
    for rank, count in sorted(again.items()):
        if count > 1:
            why = f"{count} traces are of rank {rank}: the one with the most steps is judged, {best[rank].path}"
            doubts.append(Inconclusive(NAME, why, "Read the others by themselves: one trace for each rank at a time."))
    for each in sorted(nameless, key=lambda each: each.path):
        best[next(number for number in range(len(summaries) + len(best) + 1) if number not in best)] = each
    if len(nameless) > 1:
        why = f"{len(nameless)} traces do not tell their rank; they are numbered in the order of their names"
        doubts.append(
            Inconclusive(NAME, why, "Name files rank0.json, rank1.json, …, or export after init_process_group.")
        )
    return sorted(best.items()), doubts


def _of_one(told: RankSummary) -> Iterator[Inconclusive]:
    if told.broken:
        known = f"; {told.whole} of its steps are known to be whole" if told.whole else ""
        why = f"{told.path}: read up to byte {told.broken[0]:,}: {told.broken[1]}{known}; what came after is not seen"
        yield Inconclusive(NAME, why, "Copy the file again, or export a trace of fewer steps.")
    if told.odd:
        odd = "; ".join(f"{count:,} {what}" for what, count in sorted(told.odd.items()))
        yield Inconclusive(NAME, f"{told.path}: {odd}", "Export the trace again; what could be read is judged.")
    if told.unseen:
        why = f"{told.path}: the job used {told.unseen}: the host's times are not those of the job"
        yield Inconclusive(NAME, why, "Record with ProfilerActivity.CPU and ProfilerActivity.CUDA both.")
    if not told.count:
        yield Inconclusive(
            NAME, f"{told.path}: no operator and no work on a device is in it", "Profile steps that train."
        )
    elif _few(told):
        known = (
            f"{told.whole} whole step{'s' if told.whole > 1 else ''}"
            if told.whole
            else "no step that is known to be whole"
        )
        why = f"{told.path} holds {known}: the first ones of a recording wait for what later ones find done, so that "
        yield Inconclusive(NAME, f"{why}shares are told and nothing is found in them", _RECORD)
    elif told.steps and told.steps[0].number < 0:
        why = f"{told.path}: no step is marked; all of it is judged as one"
        yield Inconclusive(NAME, why, "Call prof.step() once a step.")


def _of_all(ranks: Sequence[tuple[int, RankSummary]], aligned: Clocks) -> Iterator[Inconclusive]:
    world = max((each.world for _, each in ranks), default=0)
    missing = sorted(set(range(world)) - {number for number, _ in ranks})
    if missing:
        shown = ", ".join(map(str, missing[:8])) + (f" and {len(missing) - 8} more" if len(missing) > 8 else "")
        why = f"the job had {world} ranks; traces are missing of {shown}: whether one of them is late cannot be seen"
        yield Inconclusive(NAME, why, "Read the traces of all ranks, of the same steps, together.")
    marked = [{step.number for step in each.steps} for _, each in ranks]
    common = set.intersection(*marked) if marked else set()
    if len(ranks) > 1 and any(own != common for own in marked):
        why = f"the ranks recorded different steps; {len(common)} are in all traces, and only those are compared"
        yield Inconclusive(NAME, why, "Give every rank the same schedule.")
    unmet = [number for number, _ in ranks if number not in aligned.offsets]
    if len(ranks) > 1 and unmet:
        shown = ("rank " if len(unmet) == 1 else "ranks ") + ", ".join(map(str, unmet[:8]))
        why = f"{shown}: no collective of theirs is in another rank's trace, so their clocks cannot be aligned"
        yield Inconclusive(NAME, why, "Record the same steps on every rank.")
