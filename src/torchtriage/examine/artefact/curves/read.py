"""Files of curves become the curves of each training: one for each folder."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from pathlib import PurePath

from torchtriage.core.evidence import Inconclusive
from torchtriage.examine.artefact.crc import masked
from torchtriage.examine.artefact.curves import events, tables
from torchtriage.examine.artefact.curves.drawn import Curve, Curves
from torchtriage.examine.artefact.opened import Opened, Unreadable

_AGAIN = "Copy the file again, whole."
MOST = 2_000_000
"""Points of one file that are kept."""
_BLIND = Inconclusive(
    "curves",
    "curves hold losses, norms, scales and rates; time, memory, modules and lines they do not tell",
    "Run the job again: `torchtriage run -- …` names what it sees by step, module and line.",
)
Value = tuple[str, int, float]


def read(paths: Sequence[str]) -> Curves:
    """The curves in the files at PATHS; those of one folder are one training, of which a later file may go on."""
    folders: dict[str, dict[str, dict[int, float]]] = {}
    last: dict[str, str] = {}
    unseen: list[Inconclusive] = []
    for path in sorted(paths):
        folder = str(PurePath(path).parent)
        series = folders.setdefault(folder, {})
        last[folder] = path
        for told in _values(path):
            if isinstance(told, Inconclusive):
                unseen.append(told)
            else:
                name, step, value = told
                series.setdefault(name, {})[step] = value
    each = tuple(Curve(last[folder], _sorted(series)) for folder, series in folders.items() if series)
    told_of = "\n".join(item.why for item in unseen)
    unseen += [_empty(path) for folder, path in last.items() if not folders[folder] and f"{path}: " not in told_of]
    return Curves(tuple(paths), each, (*unseen, *([_BLIND] if each else ())))


def _sorted(series: dict[str, dict[int, float]]) -> dict[str, tuple[tuple[int, float], ...]]:
    return {name: tuple(sorted(points.items(), key=itemgetter(0))) for name, points in series.items()}


def _values(path: str) -> Iterator[Value | Inconclusive]:
    try:
        with Opened(path) as file:
            for count, told in enumerate(_reader(path)(file)):
                if count >= MOST:
                    yield _broken(path, f"more than {MOST:,} points; the rest was left out")
                    return
                yield told
            if file.broken:
                yield _broken(path, file.broken)
    except Unreadable as error:
        yield Inconclusive("curves", f"{path}: {error.why}", error.do)
    except (events.Broken, csv.Error) as error:
        yield _broken(path, str(error))
    except tables.NoJson as error:
        yield Inconclusive("curves", f"{path}: {error}; none of it has been read", _AGAIN)


def _reader(path: str) -> Callable[[Opened], Iterator[Value]]:
    """By the first byte that is no blank: a record's length begins with a byte that no text does."""
    with Opened(path) as file:
        head = file.read(12)
    if masked(head[:8]) == int.from_bytes(head[8:], "little"):
        return events.values
    return tables.state if head.lstrip()[:1] == b"{" else tables.rows


def _broken(path: str, why: str) -> Inconclusive:
    return Inconclusive("curves", f"{path}: {why}; what came before has been read", _AGAIN)


def _empty(path: str) -> Inconclusive:
    return Inconclusive("curves", f"{path}: it holds no series of numbers", "Log the loss with its step.")
