"""The logs of a job's ranks, read one after the other, and what its end began with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from signal import Signals
from typing import Any

from torchtriage.core.evidence import Inconclusive
from torchtriage.examine.artefact.logs.marks import CAUSE, KILLED, LAUNCHER, NOISE, WAITED
from torchtriage.examine.artefact.logs.said import Exit, Logs, Said
from torchtriage.examine.artefact.logs.scan import Decode, Scan
from torchtriage.examine.artefact.opened import Unreadable

END = "log/end"
"""The detector that cannot tell what came after a job broke off."""
_SHOWN = 50


def _none(_: str) -> tuple[()]:
    return ()


def read(paths: Sequence[str], decode: Decode = _none) -> Logs:
    """What the logs at PATHS say. DECODE takes a message apart, as `ask` does."""
    scans, unseen = [], []
    for path in paths:
        try:
            scans.append(Scan(path, decode).through())
        except Unreadable as error:
            unseen.append(Inconclusive("logs", f"{path}: {error.why}", error.do))
    said = tuple(each for scan in scans for each in scan.said)
    exits = _exits(scans)
    logs = Logs(
        tuple(paths),
        sum(scan.number for scan in scans),
        (*said, *_kills(exits, said)),
        exits,
        tuple(each for scan in scans for each in scan.series.lost()),
        _losses(scans),
        next((told for scan in scans if (told := scan.nccl.told())), {}),
        tuple(sorted({rank for scan in scans for rank in _ranks(scan)} | {each.rank for each in exits})),
    )
    logs = replace(logs, cause=_cause(logs, len(scans) > 1))
    return replace(logs, inconclusive=(*unseen, *_broken(scans), *_end(logs)))


def measurements(logs: Logs) -> dict[str, Any]:
    """What was read, how it ended, and the curve of the loss: [step, value] pairs, at most 400."""
    return {
        "files": len(logs.paths),
        "lines": logs.lines,
        "ranks": list(logs.ranks),
        "cause": _row(logs.cause) if logs.cause else None,
        "errors": [_row(each) for each in logs.said if each.kind != "warned"][:_SHOWN],
        "exits": [{"rank": each.rank, "code": each.code, "first": each.is_root} for each in logs.exits][:_SHOWN],
        "loss": [list(pair) for pair in _thinned(logs.losses)],
        "nccl": logs.nccl,
    }


def _row(said: Said) -> dict[str, Any]:
    where = {"path": said.path, "line": said.line, "rank": said.rank}
    return {**where, "says": said.headline, "raised_at": str(said.frame) if said.frame else None, "tier": said.tier}


def _thinned(pairs: Sequence[tuple[int | None, float]]) -> Sequence[tuple[int | None, float]]:
    every = -(-len(pairs) // 400) or 1
    return pairs[::every]


def _ranks(scan: Scan) -> set[int]:
    return scan.ranks | ({scan.rank} if scan.rank is not None else set())


def _exits(scans: Sequence[Scan]) -> tuple[Exit, ...]:
    """Of the summaries; where there is none, what a launcher said of its own ranks."""
    told = {each.rank: each for scan in scans for each in sorted(scan.summary.exits, key=lambda one: one.is_root)}
    if not told:
        told = {each.rank: each for scan in scans for each in reversed(scan.summary.local)}
    return tuple(told[rank] for rank in sorted(told))


def _kills(exits: Sequence[Exit], said: Sequence[Said]) -> Iterator[Said]:
    """Processes that a signal ended: a kernel's or scheduler's word of the same process explains it."""
    for each in exits:
        if each.code >= 0 or each.code == -15:
            continue
        by = next((one for one in said if one.pid is not None and one.pid == each.pid), None)
        why = f": {by.headline}" if by else ""
        text = f"the process was ended by {signal(-each.code)}{why}"
        yield Said(each.path, each.line, each.rank, "ended", text, tier=KILLED, pid=each.pid)


def signal(number: int) -> str:
    """The name of a signal."""
    try:
        return Signals(number).name
    except ValueError:
        return f"signal {number}"


def _cause(logs: Logs, are_many: bool) -> Said | None:
    """What stands nearest to the cause: of the rank whose end the launcher observed first, else what came first."""
    root = next((each.rank for each in logs.exits if each.is_root), None)
    ended = [each for each in logs.said if each.kind != "warned" and each.tier < NOISE]
    told = [each for each in ended if not (each.tier == LAUNCHER and each.kind == "raised")] or ended
    if not told:
        return None
    nearest = min(each.tier for each in told)
    if nearest >= KILLED:
        nearest = min(nearest, *(each.tier for each in told if each.rank == root), LAUNCHER)
    near = [each for each in told if each.tier == nearest]
    of_root = [each for each in near if root is not None and each.rank == root]
    if are_many and not of_root:  # nothing tells the order of lines in several files
        near = sorted(near, key=lambda each: each.frame is None)
    return (of_root or near)[0]


def _losses(scans: Sequence[Scan]) -> tuple[tuple[int | None, float], ...]:
    """The curve of the loss that is told most often, of the lowest rank that tells it."""
    runs = [(key, run) for scan in scans for key, run in scan.series.runs.items()]
    best = max(runs, key=lambda each: (len(each[1].values), -(each[0][0] or 0)), default=None)
    if best is None:
        return ()
    return tuple(best[1].values)


def _broken(scans: Sequence[Scan]) -> Iterator[Inconclusive]:
    for scan in scans:
        if scan.broken:
            why = f"{scan.path}: {scan.broken}; what came before, {scan.number:,} lines, has been read"
            yield Inconclusive("logs", why, "Copy the file again, whole.")
        if scan.left:
            why = f"{scan.path}: {scan.left:,} further messages, most like those that were kept, were not looked at"
            yield Inconclusive("logs", why, "Read the part of the log that matters by itself.")


def _end(logs: Logs) -> Iterator[Inconclusive]:
    if logs.cause is None:
        return
    cause = logs.cause
    who = f"rank {cause.rank}" if cause.rank is not None else "the job"
    where = f" at {cause.frame}" if cause.frame else ""
    followed = f"; {logs.followed} more follow from that" if logs.followed else ""
    why = f"{who} ended ({cause.path}:{cause.line}){where}: {cause.headline}{followed}"
    yield Inconclusive(END, why, _way_out(cause))


def _way_out(cause: Said) -> str:
    if cause.tier == CAUSE and cause.kind == "raised":
        return "`torchtriage ask` decodes the message; what the log shows until then has been judged."
    if cause.tier == WAITED:
        return "See what the ranks that are not named did meanwhile: their logs, or a Flight Recorder dump of each."
    if cause.tier == KILLED:
        return "See what ended it: the kernel's log (dmesg), the scheduler's, the host's memory. Read those logs too."
    if cause.tier == CAUSE:
        return "Give the job what it lacked, or let it save before; what the log shows until then has been judged."
    return "The logs of the other ranks tell what came before: read them together with this one."
