"""What may have parted replicas: what one rank did and another did not, until the look at which they differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from torchtriage.examine.run.job.events import Look
from torchtriage.examine.run.ranks.looks import Joint, JointLook
from torchtriage.specialists.distributed_training_strategies.probes.events import (
    Followed,
    Replica,
    WeightsLoaded,
    WrittenBeside,
)

T = TypeVar("T")


@dataclass(frozen=True)
class Cause:
    """One thing that tells the ranks apart, and the line where it is done."""

    words: str
    path: str = ""
    line: int = 0
    rank: int | None = None


@dataclass(frozen=True)
class Parting:
    """The tensor of that INDEX differs from the look number SINCE on."""

    joint: Joint
    since: int
    index: int

    @property
    def look(self) -> JointLook:
        return self.joint.looks[self.since]

    def by_rank(self, of: Callable[[Look], T], at: int | None = None) -> dict[int, T]:
        """What each rank says at that look, or at an earlier one."""
        look = self.look if at is None else self.joint.looks[at]
        return {rank: of(own) for rank, own in sorted(look.by_rank.items())}


def causes(parting: Parting) -> Iterator[Cause]:
    """The likeliest first; at the end always what the gradients say, at the update."""
    joint, look = parting.joint, parting.look
    for find in (_bypassed, _loaded, _skipped, _set, _clipped, _written):
        yield from find(parting)
    lowest = look.by_rank[min(look.by_rank)]
    path, line = lowest.at
    if not look.turn:
        path, line = joint.head.made or joint.head.built or ("", 0)
        yield Cause("they were changed after they had been sent round, or never sent", path, line)
        later = next(iter(joint.later), look)
        path, line = later.by_rank[min(later.by_rank)].at
        yield Cause("here each rank moves weights of its own", path, line)
        return
    yield Cause(_of_gradients(parting), path, line)
    for number, (path, line) in enumerate(() if joint.wrapped else lowest.asked):
        yield Cause("here the gradients of others are averaged" if not number else "that is called here", path, line)


def _of_gradients(parting: Parting) -> str:
    after = [look for look in parting.joint.looks[parting.since : parting.since + 2] if look.turn]
    marks = [{own.gradients for own in look.by_rank.values()} for look in after]
    if any(len(each) > 1 for each in marks):
        return "the gradients of this update differ too: not averaged, or changed on some ranks afterwards"
    return "the gradients are the same on all ranks: the step itself, or a change beside it, made the difference"


def _bypassed(parting: Parting) -> Iterator[Cause]:
    for rank in parting.joint.ranks:
        for replica in rank.all(Replica)[-1:]:
            if replica.bypassed:
                words = f"{replica.bypassed} steps of rank {rank.rank} went past the wrapper"
                yield Cause(words, replica.path, replica.line)
                return


def _loaded(parting: Parting) -> Iterator[Cause]:
    joint, turn = parting.joint, parting.look.turn
    found = {
        rank.rank: [each for each in rank.all(WeightsLoaded) if _matters(joint, each, turn)] for rank in joint.ranks
    }
    most = max(map(len, found.values()))
    fewest = min(map(len, found.values()))
    if most > fewest:
        rank = next(number for number, events in found.items() if len(events) == most)
        last, whom = found[rank][-1], [number for number, events in found.items() if len(events) < most]
        words = f"load_state_dict ran here on rank {rank} and not on rank {_all(whom)}"
        words += ", after the wrapper had sent the weights round" if last.wrapped else ""
        yield Cause(words, last.path, last.line, rank)


def _matters(joint: Joint, loaded: WeightsLoaded, turn: int) -> bool:
    return (loaded.wrapped or loaded.state or not joint.wrapped) and loaded.turns <= turn


def _skipped(parting: Parting) -> Iterator[Cause]:
    look = parting.look
    passes = parting.by_rank(lambda own: own.backwards)
    if look.turn and len(set(passes.values())) > 1:
        most = max(passes, key=lambda rank: passes[rank])
        least = min(passes, key=lambda rank: passes[rank])
        path, line = look.by_rank[most].at
        words = f"rank {most} had {passes[most]} backward passes until its update {look.turn}, rank {least} had "
        words += f"{passes[least]}: the step here is left out on rank {most}, or the passes are not the same"
        yield Cause(words, path, line, most)


def _set(parting: Parting) -> Iterator[Cause]:
    joint = parting.joint
    for at in range(parting.since + 1):
        settings = parting.by_rank(lambda own: own.settings, at)
        ranks = sorted(settings)
        other = next((rank for rank in ranks if settings[rank] != settings[ranks[0]]), None)
        if other is None:
            continue
        here, there = settings[ranks[0]], settings[other]
        for mine, theirs in zip(here, there, strict=False):
            name = next((name for name in mine if mine[name] != theirs.get(name)), None)
            if name is not None:
                head, turn = joint.heads[other], joint.looks[at].turn
                path, line = (head.built if not at else joint.looks[at].by_rank[other].at) or ("", 0)
                words = f"{name} is {_setting(mine[name])} on rank {ranks[0]} and {_setting(theirs.get(name))} on rank "
                words += f"{other} "
                odd = parting.look.odd(parting.index)
                yield Cause(f"{words}at update {turn}", path, line, odd)
                yield from _followed(joint) if name == "lr" else ()
                return


def _setting(value: float | Sequence[float] | None) -> str:
    return f"{value:.6g}" if isinstance(value, (int, float)) else str(value)


def _followed(joint: Joint) -> Iterator[Cause]:
    """Schedules that follow a metric, which may be another one on every rank."""
    told = [event for rank in joint.ranks for event in rank.all(Followed)]
    metrics = {event.number: {each.metric for each in told if each.number == event.number} for event in told}
    event = next((each for each in told if len(metrics[each.number]) > 1), None)
    if event is not None:
        yield Cause("here the rate follows a metric that is not the same on all ranks", event.path, event.line)


def _clipped(parting: Parting) -> Iterator[Cause]:
    clips = parting.by_rank(lambda own: own.clips)
    most = max(clips, key=lambda rank: clips[rank])
    least = min(clips, key=lambda rank: clips[rank])
    if clips[most] == clips[least]:
        return
    places = [look.by_rank[most].clipped for look in parting.joint.looks[: parting.since + 2]]
    path, line = next((each[0] for each in places if each), ("", 0))
    words = f"rank {most} had clipped gradients {_times(clips[most])} by then, rank {least} {_times(clips[least])}"
    yield Cause(words, path, line, most)


def _written(parting: Parting) -> Iterator[Cause]:
    """In-place changes beside the updates, by the counts that torch keeps of writes."""
    joint, index = parting.joint, parting.index
    writes = parting.by_rank(lambda own: own.writes[index])
    passes = parting.by_rank(lambda own: own.backwards)
    most = max(writes, key=lambda rank: writes[rank])
    least = min(writes, key=lambda rank: writes[rank])
    if len(set(passes.values())) > 1:
        return
    if writes[most] == writes[least]:
        yield from _written_by_all(parting)
        return
    record = next(rank for rank in joint.ranks if rank.rank == most)
    seen, more = record.first(WrittenBeside), writes[most] - writes[least]
    words = f"{joint.head.names[index]} was written {_times(more)} more on rank {most} than on rank {least}"
    yield Cause(words, seen.path if seen else "", seen.line if seen else 0, most)


def _written_by_all(parting: Parting) -> Iterator[Cause]:
    """Every rank writes to it beside the update, from one line: what they write may differ."""
    name = parting.joint.head.names[parting.index]
    lines = [
        {(each.path, each.line) for each in rank.all(WrittenBeside) if name in each.names}
        for rank in parting.joint.ranks
    ]
    for path, line in sorted(set.intersection(*lines)) if lines else ():
        yield Cause(f"{name} is written beside the update on every rank", path, line)


def _all(ranks: list[int]) -> str:
    return ", ".join(map(str, ranks[:4])) + (" …" if len(ranks) > 4 else "")


def _times(number: int) -> str:
    return {0: "never", 1: "once"}.get(number, f"{number} times")
