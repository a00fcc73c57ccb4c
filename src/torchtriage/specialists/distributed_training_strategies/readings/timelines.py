"""What the traces of all ranks say side by side of the network: what it takes, and in how many pieces."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from torchtriage.core.evidence import Place
from torchtriage.examine.artefact.trace.traces import Traces
from torchtriage.examine.detector import CannotSee, Sighting, detector
from torchtriage.specialists.distributed_training_strategies.readings import links

LEAST = 500_000  # nanoseconds of a step: communication-bound.md says why
SMALL, MANY = 2**18, 8  # bytes in the mean, collectives in a step: bucket-size.md


@detector("trace/communication")
def communication(traces: Traces) -> Iterator[Sighting]:
    """The share of a step in which ranks wait for collectives that no computing hides, though all had come."""
    exposed = {
        number: {step.number: step for step in each.steps}
        for number, each in zip(traces.numbers, traces.ranks, strict=True)
    }
    if traces.world < 2 or not any(each.met for each in traces.ranks):
        return
    common = sorted(set.intersection(*(set(steps) for steps in exposed.values())))
    common = common[1:] if len(common) > 3 else common
    if not common:
        return
    parts = [min(steps[number].spent.get("communication", 0) for steps in exposed.values()) for number in common]
    wholes = [median(steps[number].length for steps in exposed.values()) for number in common]
    share = sum(parts) / max(sum(wholes), 1)
    if len(traces.ranks) < traces.world:
        if share > 0.1:
            raise CannotSee(
                f"collectives take {share:.0%} of a step, but traces of {len(traces.ranks)} of {traces.world} ranks do "
                "not tell whether for the network or for a rank that comes late",
                "Read the traces of all ranks, of the same steps, together.",
            )
        return
    if median(parts) < LEAST:
        return
    left = [(sum(parts) - part) / max(sum(wholes) - whole, 1) for part, whole in zip(parts, wholes, strict=True)]
    spread = (min([share, *left]), max([share, *left])) if len(parts) > 1 else None
    first = traces.ranks[0]
    fact = (
        f"{share:.0%} of a step the ranks wait for collectives that no computing hides, the one that waits least "
        f"({len(common)} steps){_rate(traces)}{links.slow(traces)}"
    )
    yield Sighting(Place(path=first.path, rank=first.rank), fact, share, "of the step", spread)


def _rate(traces: Traces) -> str:
    """What is carried in a step, and how fast."""
    known = [each for each in traces.transfers if each.bytes and each.nanoseconds]
    if not known:
        return ""
    carried, time = sum(each.bytes for each in known), sum(each.nanoseconds for each in known)
    mean = carried / len(known) / 2**20
    return f"; {len(known)} collectives of {mean:.2f} MiB in the mean, at {carried / time:.2f} GB/s"


@detector("trace/bucket-size")
def bucket_size(traces: Traces) -> Iterator[Sighting]:
    """Gradients are averaged in many small collectives."""
    for told in traces.ranks[:1]:
        steps = {each.step for each in told.met}
        sums = [each for each in told.met if each.operation == "allreduce" and each.bytes]
        count = len(sums) / max(len(steps), 1)
        mean = sum(each.bytes for each in sums) / max(len(sums), 1)
        if count >= MANY and mean < SMALL:
            fact = f"{count:.0f} all-reduces in a step, of {mean / 1024:.1f} KiB in the mean"
            yield Sighting(Place(path=told.path, rank=told.rank), fact, count, "a step")
