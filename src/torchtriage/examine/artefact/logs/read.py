"""The logs of a job's ranks, read one after the other, and what its end began with."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from torchtriage.core.evidence import Inconclusive
from torchtriage.examine.artefact.logs import ends
from torchtriage.examine.artefact.logs.said import Exit, Logs, Said
from torchtriage.examine.artefact.logs.scan import Decode, Scan
from torchtriage.examine.artefact.opened import Unreadable

_SHOWN = 50
_LEADS = re.compile(r"[\s>|*`\"'\-]*(?:.{0,80}(?:error|exception|fail\w*|fatal)\b.{0,40}[:!>\]])?\s*", re.IGNORECASE)
"""What may stand before a message on its line."""


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
    said = tuple(each for scan in scans for each in scan.said or _bare(scan, decode))
    exits = _exits(scans)
    logs = Logs(
        tuple(paths),
        sum(scan.number for scan in scans),
        (*said, *ends.kills(exits, said)),
        exits,
        tuple(each for scan in scans for each in scan.series.lost()),
        _losses(scans),
        next((told for scan in scans if (told := scan.nccl.told())), {}),
        tuple(sorted({rank for scan in scans for rank in _ranks(scan)} | {each.rank for each in exits})),
    )
    logs = replace(logs, cause=ends.cause(logs), is_usable=any(_is_usable(scan, said) for scan in scans))
    lines = {scan.path: scan.number for scan in scans}
    logs = replace(logs, end=ends.end(logs, lines))
    return replace(logs, inconclusive=(*unseen, *_broken(scans), *ends.told(logs, lines)))


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


def _bare(scan: Scan, decode: Decode) -> Iterator[Said]:
    """Messages of one meaning without the type of an error, in a short text in which nothing else tells of one.

    Only where the message begins its line, or follows a word for an error: prose that speaks of a message quotes it.
    What is followed by the losses of a training was survived.
    """
    text = (scan.short or b"").decode("utf-8", "replace")
    for found in decode(text) if text and not scan.series.lines else ():
        before = text[text.rfind("\n", 0, found.start) + 1 : found.start]
        if len(found.faults) == 1 and _LEADS.fullmatch(before):
            line = text.count("\n", 0, found.start) + 1
            yield Said(scan.path, line, scan.rank, "native", found.text, (found,))


def _is_usable(scan: Scan, said: Sequence[Said]) -> bool:
    return bool(
        any(each.path == scan.path for each in said)
        or scan.series.lines
        or scan.nccl.told()
        or scan.summary.exits
        or scan.summary.local
    )


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


def _losses(scans: Sequence[Scan]) -> tuple[tuple[int | None, float], ...]:
    """The curve of the loss that is told most often, of the lowest rank that tells it."""
    runs = [(key, run) for scan in scans for key, run in scan.series.runs.items() if "loss" in key[1]]
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
