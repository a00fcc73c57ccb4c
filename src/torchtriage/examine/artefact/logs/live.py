"""The errors that a watched job wrote down itself, read as its log would be: one message means one thing everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from torchtriage.core.evidence import Place
from torchtriage.examine.artefact.logs import ends
from torchtriage.examine.artefact.logs.said import Exit, Logs, Said
from torchtriage.examine.artefact.logs.scan import Decode, Scan
from torchtriage.examine.artefact.logs.tracebacks import ERROR
from torchtriage.examine.run.record.crash import Crash


def read_crashes(crashes: Sequence[Crash], decode: Decode) -> Logs:
    """CRASHES, in the order in which they happened, as Logs whose places are the job's own lines."""
    said: list[Said] = []
    exits: list[Exit] = []
    lines = 0
    for crash in crashes:
        scan = Scan("", decode)
        scan.rank = crash.rank
        scan.over([_known_as_error(crash).encode("utf-8", "replace")])
        said += [_placed(each, crash) for each in scan.said]
        exits += scan.summary.exits or scan.summary.local
        lines += scan.number
    logs = Logs((), max(lines, 1), (*said, *ends.kills(exits, said)), tuple(exits))
    logs = replace(logs, cause=ends.cause(logs))
    return replace(logs, end=ends.end(logs))


def _known_as_error(crash: Crash) -> str:
    """The traceback of CRASH, in which the line of a class that is called `StopRun` is known as that of an error."""
    head, found, rest = crash.traceback.rpartition(f"\n{crash.type}")
    is_line = found and (not rest or rest[0] in ":\n") and not ERROR.match(f"{crash.type}: x")
    return f"{head}\n__main__.{crash.type}{rest}" if is_line else crash.traceback


def _placed(said: Said, crash: Crash) -> Said:
    frame = said.frame
    place = Place(
        frame.path if frame else None,
        frame.line if frame else None,
        rank=crash.rank,
        step=crash.step,
        module=crash.module,
        anchor=(frame.code or None) if frame else None,
    )
    return replace(said, at=place, met=crash.met)
