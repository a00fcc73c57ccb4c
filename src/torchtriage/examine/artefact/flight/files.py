"""The dumps of a job's ranks: which file is whose, and what each holds."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from torchtriage.core.evidence import Inconclusive
from torchtriage.examine.artefact.flight.plain import plain
from torchtriage.examine.artefact.opened import Opened, Unreadable
from torchtriage.examine.artefact.pickle.apart import Answer, answers

_HEAD = 64
_JSON = 2**27  # bytes of a dump in JSON; one of 2000 collectives has one million
_RANK = re.compile(r"(\d+)(?:\.[A-Za-z]\w*)*$")
NAME = "Name them as torch does, <prefix><rank>."


@dataclass(frozen=True)
class Dump:
    """The dump of one rank. told: as plain() has it."""

    path: str
    rank: int
    told: dict[str, Any]

    @property
    def newest(self) -> int:
        """Nanoseconds since 1970 of its last collective."""
        return max((int(row["created"]) for row in self.told["entries"]), default=0)

    @property
    def placed(self) -> int:
        """Collectives of which the line is known: the dump in JSON has none."""
        return sum(bool(row["path"]) for row in self.told["entries"])


def dumps(paths: Sequence[str]) -> tuple[list[Dump], list[Inconclusive]]:
    """One dump for each rank, by rank, and what stood in the way of more."""
    unseen: list[Inconclusive] = []
    read: list[tuple[str, dict[str, Any]]] = []
    for answer in _told(paths):
        if answer.value is None:
            unseen.append(Inconclusive("dump/read", f"{answer.path}: {answer.why}", "Dump it again, or leave it out."))
        else:
            read.append((answer.path, answer.value))
            unseen += _passed(answer)
    numbered = _numbered([path for path, _ in read])
    if numbered is None:
        said = f"the names of {len(read)} dumps do not end in ranks: they were numbered in the order of their names"
        unseen.append(Inconclusive("dump/ranks", said, NAME))
        numbered = list(range(len(read)))
    each = [Dump(path, rank, told) for (path, told), rank in zip(read, numbered, strict=True)]
    return _one_each(each, unseen), unseen


def _told(paths: Sequence[str]) -> Iterator[Answer]:
    texts = {path: answer for path in paths if (answer := _text(path)) is not None}
    pickles = [path for path in paths if path not in texts]
    known = {each.path: each for each in answers(f"{plain.__module__}:{plain.__name__}", pickles)} | texts
    yield from (known[path] for path in paths)


def _text(path: str) -> Answer | None:
    """What is in a dump in JSON; None for a pickle."""
    try:
        with Opened(path) as file:
            head = file.read(_HEAD)
            if head.lstrip()[:1] != b"{":
                return None
            data = head + file.read(_JSON)
    except Unreadable as error:
        return Answer(path, why=error.why)
    try:
        return Answer(path, plain(json.loads(data), len(data)))
    except (ValueError, RecursionError) as error:
        return Answer(path, why=f"{file.broken or 'no whole JSON'}: {type(error).__name__}: {error}"[:300])


def _passed(answer: Answer) -> Iterator[Inconclusive]:
    version = answer.value["version"]
    if version and not version.startswith(("1.", "2.")):
        said = f"{answer.path} is of version {version}; versions up to 2 are known, and it was read as one of those"
        yield Inconclusive("dump/read", said, "Update torchtriage.")
    if answer.value["passed"]:
        said = f"{answer.path}: {answer.value['passed']} entries without a group or a name were passed over"
        yield Inconclusive("dump/read", said, "Report it with the version of torch.")


def _numbered(paths: Sequence[str]) -> list[int] | None:
    """The ranks at the ends of the files' names; None where one has none."""
    found = [_RANK.search(PurePath(path).name) for path in paths]
    if len(paths) == 1 and found[0] is None:
        return [0]
    return [int(each[1][-9:]) for each in found if each is not None] if all(found) else None


def _one_each(each: Iterable[Dump], unseen: list[Inconclusive]) -> list[Dump]:
    """Of several dumps of a rank the newest, and of two of one moment the one with lines."""
    by_rank: dict[int, list[Dump]] = {}
    for dump in each:
        by_rank.setdefault(dump.rank, []).append(dump)
    for rank, several in by_rank.items():
        several.sort(key=lambda dump: (dump.newest, dump.placed), reverse=True)
        older = [dump for dump in several[1:] if dump.newest != several[0].newest]
        if older:
            said = f"rank {rank} has {len(older) + 1} dumps: of {several[0].path}, the newest, the others were left out"
            unseen.append(Inconclusive("dump/ranks", said, "Name the dumps of one moment only."))
    return [by_rank[rank][0] for rank in sorted(by_rank)]
