"""The attempts of a job that torchrun has started anew: the last is judged, of the others is told how they ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from torchtriage.core.evidence import Inconclusive
from torchtriage.examine.run.job.events import Error, Start
from torchtriage.examine.run.record import RankRecord

Records = list[RankRecord]


def divided(records: Sequence[RankRecord]) -> tuple[Records, Records]:
    """RECORDS of the last attempt, and those of earlier ones; of a job that was never started anew there are none.

    Each launcher counts the restarts for which it was the cause, so the counts of two nodes differ: what tells attempts
    apart is when a process of the same rank began, and for a rank that began once, which attempt it began with.
    """
    if not any(_start(each).restart for each in records):
        return list(records), []
    known = sorted(records, key=lambda each: (each.rank, _began(each)))
    by_rank = [list(own) for _, own in groupby(known, key=lambda each: each.rank)]
    latest = max(records, key=_began)
    world = _start(latest).world_size
    before = [_began(each) for own in by_rank for each in own[:-1]]
    last = [each for own in by_rank for each in _last(own) if each.rank < world and _with(each, latest, before, own)]
    return last, [each for each in records if not any(each is other for other in last)]


def _last(own: Records) -> Records:
    """Of one rank: the records of its last attempt, which may be those of several processes."""
    count = _start(own[-1]).restart
    return [each for each in own if _start(each).restart == count] if count else own[-1:]


def _with(record: RankRecord, latest: RankRecord, before: Sequence[int], own: Records) -> bool:
    """Whether RECORD, if it is all that its rank left, began with the LATEST attempt and not with one BEFORE."""
    if len(own) > 1 or record is latest:
        return True
    ours, theirs = _start(record), _start(latest)
    if ours.launcher == theirs.launcher:
        return ours.restart == theirs.restart
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
    error = record.first(Error)
    if error is not None:
        place = f" at {error.path}:{error.line}" if error.path else ""
        return False, error.time, f"rank {record.rank} ended at step {error.step} with {error.error}{place}"
    step = record.last_step
    why = f"rank {record.rank} ended at step {step}, with the others or for a reason that it could not write"
    return True, step, why


def _start(record: RankRecord) -> Start:
    return record.first(Start) or Start()


def _began(record: RankRecord) -> int:
    """Nanoseconds since 1970."""
    return _start(record).time
