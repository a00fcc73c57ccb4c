"""The attempts of a job that torchrun has started anew: the last is judged, of the others is told how they ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from torchtriage.core.evidence import Inconclusive
from torchtriage.examine.run.record import Event, RankRecord

Records = list[RankRecord]


def divided(records: Sequence[RankRecord]) -> tuple[Records, Records]:
    """RECORDS of the last attempt, and those of earlier ones; of a job that was never started anew there are none.

    Each launcher counts the restarts for which it was the cause, so the counts of two nodes differ: what tells attempts
    apart is when a process of the same rank began, and for a rank that began once, which attempt it began with.
    """
    if not any(_start(each).get("restart") for each in records):
        return list(records), []
    known = sorted(records, key=lambda each: (each.rank, _began(each)))
    by_rank = [list(own) for _, own in groupby(known, key=lambda each: each.rank)]
    latest = max(records, key=_began)
    world = int(_start(latest).get("world_size") or 1)
    before = [_began(each) for own in by_rank for each in own[:-1]]
    last = [each for own in by_rank for each in _last(own) if each.rank < world and _with(each, latest, before, own)]
    return last, [each for each in records if not any(each is other for other in last)]


def _last(own: Records) -> Records:
    """Of one rank: the records of its last attempt, which may be those of several processes."""
    count = _start(own[-1]).get("restart")
    return [each for each in own if _start(each).get("restart") == count] if count else own[-1:]


def _with(record: RankRecord, latest: RankRecord, before: Sequence[int], own: Records) -> bool:
    """Whether RECORD, if it is all that its rank left, began with the LATEST attempt and not with one BEFORE."""
    if len(own) > 1 or record is latest:
        return True
    ours, theirs = _start(record), _start(latest)
    if ours.get("launcher") == theirs.get("launcher"):
        return ours.get("restart") == theirs.get("restart")
    since = abs(_began(latest) - _began(record))
    return all(since <= abs(_began(record) - each) for each in before)


def told(earlier: Sequence[RankRecord]) -> Iterator[Inconclusive]:
    """How the EARLIER attempts ended, those that say why first, in the order in which they did."""
    if not earlier:
        return
    ends = sorted({_end(each) for each in earlier})
    times = max(sum(each.rank == other.rank for other in earlier) for each in earlier)
    often = "once" if times == 1 else f"{times} times"
    yield Inconclusive(
        "run/restarts",
        f"the job was started anew {often}: {'; '.join(text for *_, text in ends[:3])}",
        "The last attempt is judged alone. `torchtriage ask` decodes the message of an error; --max-restarts 0 stops "
        "the job at the first one.",
    )


def _end(record: RankRecord) -> tuple[bool, int, str]:
    error: dict[str, Any] | None = next(iter(record.all("error")), None)
    if error is not None:
        place = f" at {error['path']}:{error['line']}" if error.get("path") else ""
        return (
            False,
            int(error.get("time") or 0),
            f"rank {record.rank} ended at step {error.get('step')} with {error.get('error')}{place}",
        )
    step = max((event.get("step") or 0 for event in record.events), default=0)
    return (
        True,
        step,
        f"rank {record.rank} ended at step {step}, with the others or for a reason that it could not write",
    )


def _start(record: RankRecord) -> Event:
    return next((each for each in record.events if each.get("kind") == "start"), {})


def _began(record: RankRecord) -> int:
    """Nanoseconds since 1970."""
    return int(_start(record).get("time") or 0)
