"""What a record says about the network: the part of a step in which every rank waits, and none for another."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import CannotSee, Sighting, detector
from torchtriage.examine.run.job.events import Collectives, Device, Step
from torchtriage.examine.run.measures.figures import cpu_got
from torchtriage.examine.run.ranks.device_steps import Wait, unhidden, uses_device
from torchtriage.examine.run.ranks.meetings import exposed
from torchtriage.examine.run.reader.unseen import world_size
from torchtriage.examine.run.record import RunRecord
from torchtriage.examine.run.series.quantiles import own_seconds
from torchtriage.examine.run.series.ratio import ratio
from torchtriage.specialists.distributed_training_strategies.readings import delays, device_waits

ENOUGH_STEPS = 20
WARM = 3  # steps at the start that tell nothing
BOUND = 0.2  # of the step: communication-bound.md's
LEAST = 0.003  # seconds a step: communication-bound.md says why
QUIET = 0.8  # share of the CPU time they want that the threads get in a step that counts
LATENCY, RATE = 0.0001, 2**31  # seconds of a collective, bytes a second: better than gloo does on one quiet machine
HELD = 0.5  # of the wait, for which the threads that communicate waited for a CPU: then the machine is busy
MANY, MIB = 8, 2**20

Row = tuple[int, *tuple[Step, ...]]  # the number of a step, and the step on each rank


@detector("run/communication", timed=True)
def communication(record: RunRecord) -> Iterator[Sighting]:
    """The share of a step in which a collective is under way that no computation hides, and no rank is awaited."""
    if len(record.ranks) < 2 or world_size(record.ranks) < 2:
        return
    if any(map(uses_device, record.ranks)):
        yield from _on_devices(list(device_waits.steps_with_waits(record).values()))
    else:
        yield from _on_hosts(record)


def _on_hosts(record: RunRecord) -> Iterator[Sighting]:
    """By the clocks of the hosts, and torch's Flight Recorder."""
    looks = [look for rank in record.ranks for look in rank.all(Collectives)]
    steps = _steps(record)
    if not any(look.rows for look in looks):
        return  # "Not seen" says so
    if any(look.pairs for look in looks):
        raise CannotSee(
            "the ranks send each other tensors: a stage of a pipeline also waits for its turn, on no slow network",
            "Profile the same ten steps on every rank with torch.profiler, and compare sends with what they wait for.",
        )
    parts, wholes = _spent(record, steps)
    if len(parts) < ENOUGH_STEPS:
        return
    quiet = [at for at, (_, *rows) in enumerate(steps) if all(cpu_got([row]) >= QUIET for row in rows)]
    busy = len(quiet) < ENOUGH_STEPS
    if not busy:
        parts, wholes = [parts[at] for at in quiet], [wholes[at] for at in quiet]
    count, size = _load(looks)
    if count < MANY and size < MIB:
        return  # a handful of small messages: what holds them up is no network
    mean, step = sum(parts) / len(parts), sum(wholes) / len(wholes)
    busy = busy or _held(looks) > HELD * mean
    if mean < LEAST:
        return
    share, (low, high) = ratio(parts, wholes)
    fact = f"{share:.0%} of a step is communication that nothing hides ({mean * 1e3:.1f} of {step * 1e3:.1f} ms, "
    fact += f"{len(parts)} steps), while nobody is waited for: {_carried(looks)}"
    if busy:
        least = _least(looks, len(record.ranks))
        low = min(low, least / (least + _work(record, steps)))
        fact += f", which takes {least * 1e3:.1f} ms at least"
        if least < LEAST or low <= BOUND < high:
            raise CannotSee(
                f"{fact}; the machine was so busy that the threads which communicate waited for a CPU as well",
                "Run the job on a machine that has nothing else to do.",
            )
    line = delays.waiting(record)
    place = Place(path=line[0], line=line[1]) if line else Place()
    yield Sighting(place, fact, share, "of the step", (low, high))


def _certain(wait: Wait, devices: Sequence[Device]) -> float:
    """Seconds of WAIT that are no other work of the DEVICES. At the end of DDP's backward these also copy each average
    into its gradient, which takes them no longer than their optimizer's step: that reads it, too, and more besides.
    """
    copies = max(device.spent("optimizer") for device in devices) if wait.call == "backward" else 0.0
    return max(wait.certain - copies, 0.0)


def _on_devices(steps: Sequence[Sequence[Device]]) -> Iterator[Sighting]:
    """The same by the devices' own clocks. STEPS: of each, the step of every rank, with as many waits."""
    waits = [unhidden(devices) for devices in steps]
    parts = [sum(wait.seconds for wait in each) for each in waits]
    if not steps or sum(parts) < device_waits.LEAST * len(parts):
        return
    wholes = [sum(device.seconds for device in devices) / len(devices) for devices in steps]
    share, (low, high) = ratio(parts, wholes)
    certain = [sum(_certain(wait, devices) for wait in each) for each, devices in zip(waits, steps, strict=True)]
    low = min(low, ratio(certain, wholes)[1][0])
    mean, step = sum(parts) / len(parts), sum(wholes) / len(wholes)
    by_line: defaultdict[tuple[str, int, str], list[Wait]] = defaultdict(list)
    for wait in (wait for each in waits for wait in each):
        by_line[wait.path, wait.line, wait.call].append(wait)
    here = max(by_line.values(), key=lambda each: sum(wait.seconds for wait in each))
    path, line, call, *_ = here[0]
    of_all, size = sum(wait.seconds for wait in here) / sum(parts), sum(wait.bytes for wait in here) / len(here)
    fact = (
        f"{share:.0%} of a step the devices wait for collectives that no computing hides ({mean * 1e3:.1f} of "
        f"{step * 1e3:.1f} ms, {len(steps)} steps), while nobody is waited for; {of_all:.0%} of that "
        f"here, where {call} waits {len(here) / len(steps):.1f} times a step"
    )
    if size:
        fact += f" for {size / 1024:.3g} KiB apiece"
    yield Sighting(Place(path=path or None, line=line or None), fact, share, "of the step", (low, high))


def _steps(record: RunRecord) -> list[Row]:
    """The steps that all ranks have timed."""
    by_rank = [{step.step: step for step in rank.watched_steps} for rank in record.ranks]
    waits = [exposed(rank) for rank in record.ranks]
    if any(waits):  # of a step that no look has told of, it is not known
        by_rank = [
            {n: row for n, row in rows.items() if n in known} for rows, known in zip(by_rank, waits, strict=True)
        ]
    common = set.intersection(*(set(rows) for rows in by_rank))
    return [(step, *(rows[step] for rows in by_rank)) for step in sorted(common) if step >= WARM]


def _spent(record: RunRecord, steps: Sequence[Row]) -> tuple[list[float], list[float]]:
    """Of each step: the seconds that even the rank waited which came last, and what the step took in the mean."""
    waits = [exposed(rank) for rank in record.ranks]
    parts = [
        min(known.get(number, 0.0) + step.communication for known, step in zip(waits, each, strict=True))
        for number, *each in steps
    ]
    return parts, [sum(own_seconds(row) for row in rows) / len(rows) for _, *rows in steps]


def _held(looks: Sequence[Collectives]) -> float:
    """Mean seconds of a step for which the threads beside the one that trains waited for a CPU."""
    return sum(look.queued for look in looks) / len(looks)


def _least(looks: Sequence[Collectives], ranks: int) -> float:
    """Seconds that the collectives of a step take where nothing but latency and bandwidth holds them up."""
    count, size = _load(looks)
    return count * LATENCY + 2 * (ranks - 1) / ranks * size / RATE


def _work(record: RunRecord, steps: Sequence[Row]) -> float:
    """Mean seconds of a step in which a rank neither waits for a collective nor for a CPU: computing, at least."""
    waits = [exposed(rank) for rank in record.ranks]
    spent = [
        max(own_seconds(step) - known.get(number, 0.0) - (step.communication + step.queued), step.cpu)
        for number, *each in steps
        for known, step in zip(waits, each, strict=True)
    ]
    return sum(spent) / len(spent)


def _load(looks: Sequence[Collectives]) -> tuple[float, float]:
    """Collectives and bytes of a step, in the last look."""
    rows = next((look.rows for look in reversed(looks) if look.rows), ())
    steps = len({row[0] for row in rows}) or 1
    return sum(row[-2] for row in rows) / steps, sum(row[-1] for row in rows) / steps


def _carried(looks: Sequence[Collectives]) -> str:
    """How many collectives a step has, and how large they are."""
    count, size = _load(looks)
    kinds = sorted({op for look in looks for op, _, number in look.kinds if number >= len(look.rows) / 2})
    said = f"{count:.0f} {'/'.join(kinds) or 'collectives'} of {size / MIB:.2g} MiB in all"
    return f"{said}, {size / count / 1024:.2g} KiB apiece" if count >= MANY else said
