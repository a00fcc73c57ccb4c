"""The folder of a run becomes a record: one rank for each, and what stood in the way of seeing more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from torchtriage.core.errors import NOTHING_EXAMINED, TriageError
from torchtriage.examine.run import lines
from torchtriage.examine.run.job.events import Start, Step
from torchtriage.examine.run.lines import Row
from torchtriage.examine.run.ranks import attempts
from torchtriage.examine.run.reader.endings import crashes
from torchtriage.examine.run.reader.unseen import unseen
from torchtriage.examine.run.record import Log, RankRecord, RunRecord


def read(folder: Path) -> RunRecord:
    """The record in FOLDER; raises TriageError when there is no such folder.

    Lines that a killed job did not finish and kinds that nobody knows are passed over. Of a job that was started anew
    the last attempt counts; of several processes with the same rank, the one with the most steps.
    """
    if not folder.is_dir():
        raise TriageError(
            "there is no such folder", str(folder), "Name the folder of a `torchtriage run`.", NOTHING_EXAMINED
        )
    last, earlier = attempts.divided([_rank_record(path) for path in sorted(folder.glob("rank*.jsonl"))])
    by_rank: dict[int, list[RankRecord]] = {}
    for record in last:
        by_rank.setdefault(record.rank, []).append(record)
    ranks = tuple(max(by_rank[rank], key=lambda each: len(each.all(Step))) for rank in sorted(by_rank))
    notes = Log(tuple(event for path in sorted(folder.glob("processes*.jsonl")) for event in _events(path)))
    busy = {rank: sum(bool(each.every_step) for each in records) for rank, records in by_rank.items()}
    left_out = {rank: number - 1 for rank, number in busy.items() if number > 1}
    baseline = next(_events(folder / "baseline.json"), {})
    why = (*attempts.told(earlier), *unseen(ranks, notes, left_out))
    return RunRecord(ranks, why, baseline, crashes(ranks, notes), notes.rows)


def _rank_record(path: Path) -> RankRecord:
    rows = tuple(_events(path))
    start = Log(rows).first(Start) or Start()
    named = path.name.removeprefix("rank").split(".")[0]
    rank = start.rank if isinstance(start.rank, int) else int(named) if named.isdecimal() else 0
    meetings = sorted(_events(path.parent / f"meetings{rank}.{start.pid}.jsonl"), key=lambda row: row.get("n") or 0)
    return RankRecord(rank, (*rows, *meetings, *_events(path.parent / f"workers{rank}.jsonl")))


def _events(path: Path) -> Iterator[Row]:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return
    except OSError as error:
        raise TriageError(
            f"cannot be read: {error.strerror}", str(path), "Make the file readable.", NOTHING_EXAMINED
        ) from error
    yield from lines.rows(data.splitlines())
