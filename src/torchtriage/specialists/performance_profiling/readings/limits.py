"""What limits a step on a device: whether the host waits for it, copies to it, or launches too slowly for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from msgspec import Struct

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import CannotSee, Sighting, detector
from torchtriage.examine.run.job.events import Device, HostWaits, Meeting, Setup, Start, Utilization, Wrapper
from torchtriage.examine.run.record import RankRecord
from torchtriage.examine.run.series.quantiles import number
from torchtriage.examine.run.series.ratio import ratio
from torchtriage.specialists.performance_profiling.probes.events import Aid

REGULAR = 0.8  # of the steps: what waits less often is a log, an evaluation or a checkpoint
ENOUGH_STEPS = 10
WAITING = 0.05  # of a step, that waits may take where the host is called slow by itself
DISTURBED = 0.1  # of a step, that probes may take where the host is called slow
BLOCKING = "CUDA_LAUNCH_BLOCKING"
PINNED = " from pinned memory"
TO_DEVICE = " from "  # between a copy's name and the host's memory, in the names of calls
ALIKE = 0.01  # of a step: by which two shares differ that are printed as one
FEWEST = 2  # readings of a device, after the first
ROUNDED = 0.01  # a device tells whole percents
ELSEWHERE = 1 << 31  # bytes that others hold of a device, from which they may work on it; a context takes a quarter
MOST_LINES, NOTICEABLE = 3, 0.1  # that are named, and of what all lines cost


class Line(Struct, frozen=True):
    """A line that waits in a step. waited, idle, lost, copied, worked: seconds, as HostWaits has them.

    worked: None in records of before it was measured.
    """

    path: str
    line: int
    call: str
    times: int
    waited: float
    idle: float
    lost: float
    copied: float
    worked: float | None = None

    @property
    def is_copy(self) -> bool:
        """Whether it copies from the host to the device."""
        return TO_DEVICE in self.call


class Watched(Struct, frozen=True):
    """A step that was timed on the device, and the calls in it that made the host wait."""

    device: Device
    lines: tuple[Line, ...]
    is_counted: bool


class Working(Struct, frozen=True):
    """The share of the time in which a kernel runs on the device, by several readings of its own."""

    share: float
    low: float
    high: float
    readings: int


Key = tuple[str, int, str]


@detector("run/sync-wait", timed=True)
def sync_wait(record: RankRecord) -> Iterator[Sighting]:
    """The share of a step that the device idles because the host waited for it, in lines that wait in each step."""
    steps = _watched(record)
    chosen = _regular(steps, lambda line: not line.is_copy)
    if not chosen:
        return
    if not all(step.is_counted for step in steps):
        raise CannotSee(
            "lines wait for the device in each step, but it does not tell whether it had work to do afterwards",
            "Profile ten steps with torch.profiler: its trace shows the device's own timeline.",
        )
    wholes, working = [step.device.seconds for step in steps], _working(record)
    both = list(zip(steps, chosen, strict=True))
    runs_ahead = working if not _regular(steps, lambda line: line.is_copy) else None  # a copy that blocks would wait
    gained = [_gained(*each, runs_ahead.high) if runs_ahead else _least(each[1]) for each in both]
    least, (low, _) = ratio(gained, wholes)
    most, (_, high) = ratio([_gained(*each, working.low) if working else _most(*each) for each in both], wholes)
    share = ratio([_gained(*each, runs_ahead.share) for each in both], wholes)[0] if runs_ahead else least
    said = f"{share:.0%}" if most < least + ALIKE else f"{least:.0%} to {most:.0%}"
    for (path, at, call), lines in _by_line(chosen, lambda line: line.waited if runs_ahead else line.lost):
        dry = sum(any(line.idle > 0 for line in each) for each in lines) / len(steps)
        fact = (
            f"{said} of a step is lost to waits for the device: {call}() makes the host wait "
            f"{_mean(lines, 'times'):.1f} times a step, {_ms(lines, 'waited')} of {_length(steps)}; in {dry:.0%} of "
            f"the steps the device has nothing to do in the end, for {_ms(lines, 'idle')} a step ({len(steps)} steps)"
        )
        place = Place(path=path, line=at, rank=record.rank)
        yield Sighting(place, fact, share, "of the step", (min(low, share), max(share, high)))


@detector("run/transfer-wait", timed=True)
def transfer_wait(record: RankRecord) -> Iterator[Sighting]:
    """The share of a step in which the device does nothing but a copy from the host, for which the host waits."""
    steps = _watched(record)
    chosen = _regular(steps, lambda line: line.is_copy)
    if not chosen:
        return
    copied = [sum(line.copied for line in lines) for lines in chosen]
    share, spread = ratio(copied, [step.device.seconds for step in steps])
    for (path, at, call), lines in _by_line(chosen, lambda line: line.copied):
        name, _, memory = call.partition(TO_DEVICE)
        fact = (
            f"{share:.0%} of a step the device does nothing but copy from the host: {name}() copies from {memory} "
            f"{_mean(lines, 'times'):.1f} times a step, for {_ms(lines, 'copied')} of {_length(steps)} "
            f"({len(steps)} steps)"
        )
        yield Sighting(Place(path=path, line=at, rank=record.rank), fact, share, "of the step", spread)


@detector("run/pinned-wait", timed=True)
def pinned_wait(record: RankRecord) -> Iterator[Sighting]:
    """A copy from pinned memory makes the host wait in each step, since it does not ask to be non-blocking."""
    chosen = _regular(_watched(record), lambda line: line.call.endswith(PINNED))
    for (path, at, call), lines in _by_line(chosen, lambda line: line.waited):
        fact = (
            f"{call.partition(TO_DEVICE)[0]}() copies from pinned memory without non_blocking=True: the host waits "
            f"{_mean(lines, 'times'):.1f} times a step, for {_ms(lines, 'waited')} ({len(lines)} steps)"
        )
        yield Sighting(Place(path=path, line=at, rank=record.rank), fact)


@detector("run/host-pace", timed=True)
def host_pace(record: RankRecord) -> Iterator[Sighting]:
    """The share of a step in which the device has caught up with the host at the end of each phase; nothing waits."""
    steps = _watched(record)
    if not steps:
        return
    _launches_wait(record)
    wholes = [step.device.seconds for step in steps]
    if sum(line.waited for step in steps for line in step.lines) > WAITING * sum(wholes):
        return  # behind a wait every device has caught up
    share, spread = ratio([step.device.host_paced for step in steps], wholes)
    overhead = sum(step.device.overhead for step in steps) / sum(wholes)
    if share > 0.5 and overhead > DISTURBED:
        raise CannotSee(
            f"the device has caught up with the host, but probes took {overhead:.0%} of the host's time in these steps",
            "Profile ten steps with torch.profiler: its trace shows the gaps between kernels.",
        )
    fact = (
        f"for {share:.0%} of a step of {_length(steps)} the host sets the pace: nothing waits for the device, and by "
        f"the end of forward pass, backward pass and optimizer step it has done all that was launched "
        f"({len(steps)} steps)"
    )
    yield Sighting(Place(rank=record.rank), fact, share, "of the step", spread)


def device_share(record: RankRecord) -> Sighting:
    """The share of a step in which the device certainly works, but for copying its data.

    Raises CannotSee where it has no events with times, and where collectives cannot be told apart from its work.
    """
    is_parallel = record.has(Wrapper) or record.has(Meeting)
    if is_parallel and not any(each.waits for each in record.on_device):
        raise CannotSee(
            "collectives run on the device's timeline, where they were not told apart from computing",
            "Profile the same ten steps on every rank with torch.profiler.",
        )
    steps, working = _watched(record), _working(record)
    if working is not None and steps and not is_parallel:  # a kernel that waits for another rank runs, too
        fact = f"a kernel runs on the device for {working.share:.0%} of the time ({working.readings} readings)"
        spread = working.low, working.high
        return Sighting(Place(rank=record.rank), fact, working.share, "of the time", spread)
    share, spread = ratio([step.device.busy or 0.0 for step in steps], [step.device.seconds for step in steps])
    fact = f"the device certainly computes for {share:.0%} of a step of {_length(steps)}"
    return Sighting(Place(rank=record.rank), f"{fact} ({len(steps)} steps)", share, "of the step", spread)


def _launches_wait(record: RankRecord) -> None:
    """Raises CannotSee where something of the job's own makes the host wait for each kernel or each backward node."""
    environment = (record.first(Start) or Start()).environment
    blocking = [
        name for name, value in environment.items() if name.endswith("LAUNCH_BLOCKING") and value not in {"", "0"}
    ]
    if blocking or record.has(Aid):
        aid = blocking[0] if blocking else "a debugging aid"
        raise CannotSee(f"{aid} is on, under which the host waits for the device again and again", "Run without it.")


def _watched(record: RankRecord) -> list[Watched]:
    """The steady steps that were timed on the device; none of a job that uses no device.

    Raises CannotSee where they are too few, or where the model lies on several.
    """
    if not any(step.allocated for step in record.steps):
        return []
    devices = {name for model in _models(record) for name in model.get("devices", ()) if ":" in name}
    if len(devices) > 1:
        named = ", ".join(sorted(devices))
        raise CannotSee(
            f"the model lies on {len(devices)} devices ({named}), and one of them was timed: while it waits, the "
            "others may work",
            "Profile ten steps with torch.profiler: its trace shows the timeline of each device.",
        )
    steady = {step.step for step in record.steps}
    waits = {each.at: each for each in record.all(HostWaits)}
    timed = [each for each in record.on_device if each.at in waits and each.at in steady and each.seconds > 0]
    if len(timed) < ENOUGH_STEPS:
        raise CannotSee(
            f"{len(timed)} steady steps were timed on the device, by events of its own; {ENOUGH_STEPS} are needed",
            "Let the job run for 40 steps or more; where its device has no events, profile ten steps with "
            "torch.profiler: its trace shows the device's own timeline.",
        )
    return [_of_step(each, waits[each.at]) for each in timed]


def _working(record: RankRecord) -> Working | None:
    """None where the device does not tell, or others work on it, too."""
    found = record.all(Utilization)[1:]  # the first holds what the job does before its first step
    if len(found) < FEWEST or max(each.elsewhere for each in found) > ELSEWHERE:
        return None
    shares = [each.share for each in found]
    low, high = max(min(shares) - ROUNDED, 0.0), min(max(shares) + ROUNDED, 1.0)
    return Working(median(shares), low, high, len(shares))


def _least(lines: Sequence[Line]) -> float:
    return sum(line.lost for line in lines)


def _gained(step: Watched, lines: Sequence[Line], working: float) -> float:
    """The seconds by which STEP would be shorter without the waits of LINES, if kernels run for a share WORKING of it.

    The host would need as long as now, less the waits, and the device as long as its kernels take: the longer of both
    is the length of a step in which nothing else makes the host wait.
    """
    whole, waited = step.device.seconds, sum(line.waited for line in lines)
    return max(min(waited, whole * (1 - working)), _least(lines))


def _most(step: Watched, lines: Sequence[Line]) -> float:
    """The seconds by which STEP would be shorter at most without the waits of LINES.

    The host would need as long as now, less the waits, and the device as long as it certainly works: short kernels may
    leave it idle in between, which nobody sees.
    """
    lost, waited = sum(line.lost for line in lines), sum(line.waited for line in lines)
    worked = [line.worked for line in lines if line.worked is not None]
    if not worked:
        return lost
    return max(min(waited, step.device.seconds - max(step.device.busy or 0.0, sum(worked))), lost)


def _models(record: RankRecord) -> list[Mapping[str, Any]]:
    return [model for setup in record.all(Setup) for model in setup.models]


def _of_step(device: Device, waits: HostWaits) -> Watched:
    return Watched(device, tuple(Line(*row) for row in waits.waits), waits.is_counted)


def _regular(steps: Sequence[Watched], is_meant: Callable[[Line], bool]) -> list[list[Line]]:
    """Of each step, the lines of the user's that are meant and wait in nearly all steps; empty where there is none."""
    counts: dict[Key, int] = {}
    for step in steps:
        for key in {_key(line) for line in step.lines if line.path and line.times and is_meant(line)}:
            counts[key] = counts.get(key, 0) + 1
    often = {key for key, count in counts.items() if count >= REGULAR * len(steps)}
    return [[line for line in step.lines if _key(line) in often] for step in steps] if often else []


def _by_line(chosen: Sequence[Sequence[Line]], cost: Callable[[Line], float]) -> list[tuple[Key, list[list[Line]]]]:
    """The lines that cost a noticeable part of what all do, with what each step has of them, the dearest first."""
    keys = {_key(line) for lines in chosen for line in lines}
    each = {key: [[line for line in lines if _key(line) == key] for lines in chosen] for key in keys}
    costs = {key: sum(cost(line) for lines in told for line in lines) for key, told in each.items()}
    dear = [item for item in each.items() if costs[item[0]] >= NOTICEABLE * sum(costs.values())]
    return sorted(dear, key=lambda item: (-costs[item[0]], item[0]))[:MOST_LINES]


def _key(line: Line) -> Key:
    return line.path, line.line, line.call


def _mean(lines: Sequence[Sequence[Line]], name: str) -> float:
    """Of a step."""
    return float(sum(getattr(line, name) for each in lines for line in each)) / len(lines)


def _ms(lines: Sequence[Sequence[Line]], name: str) -> str:
    return f"{number(_mean(lines, name) * 1e3)} ms"


def _length(steps: Sequence[Watched]) -> str:
    return f"{number(sum(step.device.seconds for step in steps) / len(steps) * 1e3)} ms"
