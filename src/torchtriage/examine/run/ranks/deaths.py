"""How the ranks of a job came to an end that was not the end of their script: the one that began it first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from torchtriage.core.evidence import Inconclusive
from torchtriage.examine.run.job.events import End, Ended, Error, Slow, Start
from torchtriage.examine.run.ranks.stood import Stand, stands
from torchtriage.examine.run.record import RankRecord, RunRecord

END = "run/end"  # the detector that cannot tell what came after a job broke off
LATE = 10.0  # seconds after the first rank, from which on one is said to have started late
_JUDGED = "What was recorded until then has been judged. Let the job come to its end to see the rest."
_ASK = "What was recorded until then has been judged. `torchtriage ask` decodes the message of the error."
_KILLED = (
    "See what ended its process: the scheduler's log, dmesg (out of memory), the launcher's list of exit codes. What "
    "was recorded until then has been judged."
)
_WAITED = ("waits", "lost")


def deaths(ranks: Sequence[RankRecord], ended: Mapping[int, Ended]) -> Iterator[Inconclusive]:
    """ENDED: what the launcher of each rank says of the job's end, by rank."""
    at, records = stands(RunRecord(tuple(ranks))), {record.rank: record for record in ranks}
    causes = sorted((each for each in at.values() if _is_cause(each, at)), key=_moment)
    for each in causes:
        yield from _cause(records[each.rank], each, ended[each.rank], at)
    for each in (each for each in at.values() if each not in causes):
        yield from _of(records[each.rank], each, ended[each.rank], causes)


def started_late(ranks: Sequence[RankRecord]) -> Iterator[Inconclusive]:
    """Ranks whose records begin long after the first one's, by the clocks of their hosts."""
    began = {record.rank: start.time for record in ranks if (start := record.first(Start)) and start.time}
    first = min(began.values(), default=0)
    late = {rank: (moment - first) / 1e9 for rank, moment in began.items() if moment - first > LATE * 1e9}
    if late:
        told = ", ".join(f"rank {rank} {seconds:.0f} s" for rank, seconds in sorted(late.items())[:8])
        yield Inconclusive(
            "run/ranks",
            f"ranks began to train later than the first one: {told}",
            "See what they did before (imports from a slow disk, a download, a first compilation), or whether the "
            "clocks of the hosts differ.",
        )


def _is_cause(stand: Stand, at: Mapping[int, Stand]) -> bool:
    """Whether others may have ended, or may wait, since this one ended by itself or was ended."""
    others = [each for each in at.values() if each is not stand]
    if stand.how == "failed":
        return bool(others)
    return stand.how == "silent" and any(each.how in _WAITED for each in others)


def _moment(stand: Stand) -> int:
    return stand.error.time if stand.error is not None else 0


def _cause(record: RankRecord, stand: Stand, ended: Ended, at: Mapping[int, Stand]) -> Iterator[Inconclusive]:
    if stand.how == "failed":
        yield from _alone(record, ended)
        return
    waited = [each.rank for each in at.values() if each.how in _WAITED]
    who = ", ".join(map(str, waited[:8]))
    yield Inconclusive(
        END,
        f"the process of rank {stand.rank} was ended at step {record.last_step} from outside, or by a library, while "
        f"rank {who} waited for it",
        _KILLED,
    )


def _of(record: RankRecord, stand: Stand, ended: Ended, causes: Sequence[Stand]) -> Iterator[Inconclusive]:
    if stand.how == "lost" and causes and stand.error is not None:
        yield Inconclusive(
            END,
            f"rank {stand.rank} ended at step {record.last_step} with {stand.error.error}{_place(stand.error)}, "
            f"since rank {causes[0].rank} had ended",
            "Solve what ended that rank first.",
        )
    elif stand.how in {"waits", "still", "busy", "seen"}:
        path, line = stand.place
        where = f" at {path}:{line}" if path else ""
        why = f", since rank {causes[0].rank} had ended" if causes and stand.how == "waits" else ""
        by = "; --end-hang ended the job" if ended.hang else ""
        does = {"waits": "waited for others", "still": "stood still", "busy": "worked", "seen": "was seen"}[stand.how]
        yield Inconclusive(
            "run/hang", f"rank {stand.rank} {does}{where} for {stand.seconds:.3g} s at its end{why}{by}", _JUDGED
        )
    else:
        yield from _alone(record, ended)


def _alone(record: RankRecord, ended: Ended) -> Iterator[Inconclusive]:
    """One rank's end, as far as it tells itself."""
    error, last = record.first(Error), record.last_step
    if error is not None and error.error == "KeyboardInterrupt":
        if not record.rank:
            yield Inconclusive(END, f"it was stopped by Ctrl-C at step {last}", _JUDGED)
    elif record.has(End) or record.has(Slow):
        if error is None and ended.code and not record.rank:
            how = ended.signal or f"exit code {ended.code}"
            yield Inconclusive(END, f"the job ended with {how} at step {last}", _JUDGED)
    elif error is not None:
        yield Inconclusive(END, f"rank {record.rank} ended at step {last} with {error.error}{_place(error)}", _ASK)
    else:
        yield Inconclusive(END, f"rank {record.rank} wrote nothing after step {last}: {_silence(ended)}", _JUDGED)


def _silence(ended: Ended) -> str:
    if ended.signal:
        return f"the job was ended by {ended.signal}"
    if ended.code:
        return f"the job ended with exit code {ended.code}, by os._exit or by a signal to this rank alone"
    return "it was killed, or left by os._exit, or closed the file of its record, or the disk was full"


def _place(error: Error) -> str:
    return f" at {error.path}:{error.line}" if error.path else ""
