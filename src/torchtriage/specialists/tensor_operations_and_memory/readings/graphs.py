"""What a record says about the autograd graphs of earlier steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import CannotSee, Sighting, detector
from torchtriage.examine.run.job.events import Step
from torchtriage.examine.run.record import RankRecord
from torchtriage.examine.run.record.further import further
from torchtriage.specialists.tensor_operations_and_memory.probes.events import CarriedState, Graphs, InnerGraphs
from torchtriage.specialists.tensor_operations_and_memory.readings.states import grows

GRAPHS = 8  # of earlier steps: fewer may be a window that the algorithm needs
KEPT = {
    "loss": "a loss after its backward",
    "output": "an output with its graph",
    "sum": "a term of a sum",
    "within": "a tensor from within a forward pass, with the graph below it,",
}
FROM_THE_START = 0.8  # of the steps, at least, lie after the oldest graph that is alive


@detector("run/graph-retained")
def graph_retained(record: RankRecord) -> Iterator[Sighting]:
    """The autograd graphs of earlier steps are still alive."""
    counts = record.recent(Graphs)
    if not counts and not any(step.backward for step in record.all(Step)):
        raise CannotSee(
            "no backward pass was seen", "Run the job until it trains: ten steps are enough for most readings."
        )
    if not counts:
        raise CannotSee(
            f"{len(record.all(Step))} steps, of which ten with a graph are needed", "Let the job run for 20 steps."
        )
    last = _grown(counts) or _grown(record.recent(InnerGraphs))
    if last is None or last.bounded:
        return
    if last.kept == "sum" and any(grows(each.nodes) for each in record.all(CarriedState)):
        return  # hidden-state-not-detached tells it, with the line of the call
    alive, seen, holder = last.alive, last.lately, last.holder
    if last.is_on_ctx:
        return  # a circle, which waits for the garbage collector: tensor-on-ctx finds it, with the line
    if any(row.boundary != "optimizer" for row in record.every_step[-1:]):
        raise CannotSee(
            f"the graphs of {alive} of {seen} passes are still alive, and no optimizer has stepped: they may be parts "
            "of one step",
            "Let the job run for 20 optimizer steps.",
        )
    late = f" since step {last.since}" if last.lately < last.seen else ""
    held = f"held by {holder}" if holder else "whose holder has no name in the running functions"
    place = Place(path=last.path or None, line=last.line or None, rank=record.rank, step=last.step, container=holder)
    looked = " that were followed" if last.kept == "within" else ""
    fact = f"the autograd graphs of {alive} of {seen} steps{looked}{late} are still alive, {held}{_kept(last)}"
    yield from further(Sighting(place, fact, float(alive), "graphs"), last.further)


def _grown(counts: Sequence[Graphs]) -> Graphs | None:
    """The count that shows graphs piling up: from the start or from a later step on, to the end; or, where they are
    let go now and then, to twice their number in two such turns or more. A window of the latest steps only moves on;
    what a later backward goes through again was kept for that.
    """
    if not counts:
        return None
    piles: dict[int, list[Graphs]] = {}
    for each in counts:
        if each.alive >= GRAPHS and 2 * each.alive >= each.lately:
            piles.setdefault(each.since, []).append(each)
    doubled = [pile for pile in piles.values() if pile[-1].alive >= 2 * _first(pile[0])]
    last = counts[-1]
    if last in piles.get(last.since, []):
        from_the_start = last.lately >= FROM_THE_START * last.seen
        used = last.again >= last.alive  # as those before it were, this pile will be
        if from_the_start or (not used and any(pile[-1] is last for pile in doubled)):
            return last
    return doubled[-1][-1] if len(doubled) > 1 and not last.again else None


def _first(count: Graphs) -> int:
    return count.alive if count.first is None else count.first


def _kept(last: Graphs) -> str:
    if last.kept is None:
        return ""
    activations = f"{last.bytes / 1024:.0f} KiB of tensors" if last.bytes > 1024 else "no activations"
    return f"; each is {KEPT[last.kept]} and keeps {last.nodes} graph nodes (some 10 KiB per hundred) and {activations}"
