"""What could not be seen: each reason once, with the detectors and the files that it holds for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from posixpath import commonpath, isabs

from msgspec import Struct

from torchtriage.core.case import Case
from torchtriage.core.evidence import Inconclusive
from torchtriage.examine.run.reader.unseen import END
from torchtriage.report.ending import end_of
from torchtriage.report.text import count, line, sentence

NAMED = 4
"""Detectors, or files, that are named beside each other."""
ENDS = (END, "log/end")
"""The detectors that cannot tell what came after a job broke off."""
_OF_FILE = re.compile(r"(?P<path>\S[^:]*\.(?:py|ipynb)(?::\d+)?): (?P<rest>.+)")


class Blind(Struct, frozen=True):
    """What could not be seen: for which detectors, why, and what would let them see."""

    detectors: str
    why: str
    unblock: str


def blind(case: Case) -> tuple[Blind, ...]:
    """Detectors that lacked the same thing are named together, many of them by their number.

    What ended the job stands in the verdict; it is not told again.
    """
    ends = ENDS if end_of(case) is not None else ()
    groups: dict[tuple[bool, str, str], list[Inconclusive]] = {}
    for item in case.inconclusive:
        if item.detector not in ends:
            path, why = _in_file(item)
            groups.setdefault((path == "", why, sentence(item.unblock)), []).append(item)
    return tuple(
        Blind(_named(list(dict.fromkeys(line(item.detector) for item in group))), _why(group), unblock)
        for (_, _, unblock), group in groups.items()
    )


def _in_file(item: Inconclusive) -> tuple[str, str]:
    """The file of which something was not seen, "" where it is none; and what is said of it."""
    found = _OF_FILE.match(line(item.why))
    return (found["path"], sentence(found["rest"])) if found else ("", sentence(item.why))


def _why(group: Sequence[Inconclusive]) -> str:
    """Why something was not seen; of several files once, with their names below the folder that they share."""
    paths = list(dict.fromkeys(path for path, _ in map(_in_file, group)))
    if len(paths) < 2:
        return sentence(group[0].why)
    folder = commonpath(paths) if len({isabs(path) for path in paths}) == 1 else ""
    names = [path.removeprefix(f"{folder}/") if folder else path for path in paths]
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    where = f"In {folder}: " if folder else ""
    return f"{count(len(paths), 'file')}: {_in_file(group[0])[1]} {where}{', '.join(names[:NAMED])}{more}."


def _named(names: Sequence[str]) -> str:
    """The names of detectors, of many the first and how many more; the case holds them all."""
    return ", ".join(names) if len(names) <= NAMED else f"{names[0]} and {len(names) - 1} more checks"
