"""What the traces of all ranks say side by side: who comes late, and what the network takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from torchtriage.core.evidence import Place
from torchtriage.examine.artefact.trace.rank import StepOf
from torchtriage.examine.artefact.trace.traces import Traces
from torchtriage.examine.detector import CannotSee, Sighting, detector

LEAST = 500_000  # nanoseconds of a step: straggler.md and communication-bound.md say why
MOST = 0.7  # of the steps, in which a straggler is late
LARGE = 2**20  # bytes from which a collective tells of its link and not of its latency
SLOW = 2.0  # times as long as the same collective takes among other ranks
SMALL, MANY = 2**18, 8  # bytes in the mean, collectives in a step: bucket-size.md
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
    """One rank comes late to the first collective of a step, and the others wait for it."""
    arrivals = traces.arrivals[1:] if len(traces.arrivals) > 3 else traces.arrivals
    if not arrivals:
        return
    ranks = [rank for rank in traces.numbers if all(rank in each.begins for each in arrivals)]
    found = {rank: sorted(each.late(rank) for each in arrivals) for rank in ranks}
    for rank, late in found.items():
        told = traces.of(rank)
        share = sum(each > LEAST for each in late) / len(late)
        residual = traces.clocks.residual or 0
        if median(late) < max(LEAST, 3 * residual) or share < MOST:
            continue
        step = median(each.length for each in told.steps)
        low, high = (late[0], late[-1]) if len(late) < 8 else (late[len(late) // 8], late[-1 - len(late) // 8])
        fact = (
            f"rank {rank} comes {median(late) / 1e6:.1f} ms later than half of the others to the first collective of "
            f"a step, in {share:.0%} of {len(late)} steps: {median(late) / step:.0%} of a step of {step / 1e6:.1f} ms; "
            f"the clocks agree to {residual / 1e6:.2f} ms"
        )
        yield Sighting(
            Place(path=told.path, rank=rank),
            f"{fact}{_phase(traces, rank, median(late))}{_machine(traces, found, rank)}",
            median(late) / step,
            "of the step",
            (low / step, high / step),
        )


def _phase(traces: Traces, rank: int, late: float) -> str:
    """The phase in which RANK needs longer than the others before that collective."""
    ahead = {each: _ahead(traces.of(each).steps) for each in traces.numbers}
    more = {
        phase: time - median(ahead[each].get(phase, 0.0) for each in ahead if each != rank)
        for phase, time in ahead[rank].items()
    }
    phase = max(more, key=lambda each: more[each], default="")
    if not phase or more[phase] < 0.3 * late:
        return ""
    return f"; {min(more[phase] / late, 1.0):.0%} of that is {CAUSES.get(phase, phase)}"


def _ahead(steps: Sequence[StepOf]) -> dict[str, float]:
    steady = [step.ahead for step in steps if step.ahead]
    steady = steady[1:] if len(steady) > 3 else steady
    phases = dict.fromkeys(phase for ahead in steady for phase in ahead)
    return {phase: median(ahead.get(phase, 0) for ahead in steady) for phase in phases}


def _machine(traces: Traces, found: dict[int, list[int]], rank: int) -> str:
    """Whether all ranks of its host are late, or only it."""
    host = traces.of(rank).host
    beside = [each for each in found if each != rank and host and traces.of(each).host == host]
    elsewhere = [each for each in found if traces.of(each).host != host]
    if not elsewhere or not beside:
        return ""
    also = [each for each in beside if median(found[each]) > LEAST]
    return (
        f"; all ranks of its host {host} are late"
        if len(also) == len(beside)
        else f"; others on its host {host} are not"
    )


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
        f"({len(common)} steps){_rate(traces)}{_link(traces)}"
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


def _link(traces: Traces) -> str:
    """The group of ranks among which the same collective takes SLOW times as long as among others."""
    by_kind: dict[tuple[str, int, int], dict[tuple[int, ...], list[int]]] = {}
    for each in traces.transfers:
        if each.bytes >= LARGE:
            kind = by_kind.setdefault((each.operation, each.bytes, len(each.ranks)), {})
            kind.setdefault(each.ranks, []).append(each.nanoseconds)
    for (operation, size, _), groups in by_kind.items():
        times = {ranks: median(each) for ranks, each in groups.items()}
        for ranks, time in times.items():
            others = [each for other, each in times.items() if other != ranks]
            if others and time > SLOW * median(others) > 0:
                named = ", ".join(map(str, ranks[:8]))
                return (
                    f"; the link among ranks {named} is slow: {operation} of {size / 2**20:.0f} MiB takes "
                    f"{time / median(others):.1f} times as long as among others, though all had come"
                )
    return ""


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
