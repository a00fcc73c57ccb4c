"""What the detectors saw in one file, and the memory of it: the same content is examined once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from torchtriage.catalog.cache import folder
from torchtriage.core.evidence import Evidence, Inconclusive
from torchtriage.examine import confinement
from torchtriage.examine.detector import Detector, perform
from torchtriage.examine.source import notebook
from torchtriage.examine.source.execution.trainings import Trainings, note_unfinished
from torchtriage.examine.source.project import is_module
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.suppressions import applied
from torchtriage.examine.source.text import Text, UnreadableError

KEPT = 3
_MENTIONED = (b"torch", b"accelerate", b"lightning", b".state_dict(", b".zero_grad(")


class Seen(Struct, frozen=True):
    """What one file showed. silenced: how many places a comment silenced. is_read: whether it could be read.

    elsewhere: what its execution showed in other files of its project. linked: the files of its project that were
    looked into for it, and a digest of what each held. absent: where modules of the project were looked for, and were
    not.
    """

    evidence: tuple[Evidence, ...] = ()
    elsewhere: tuple[Evidence, ...] = ()
    inconclusive: tuple[Inconclusive, ...] = ()
    silenced: int = 0
    is_read: bool = True
    linked: tuple[tuple[str, str], ...] = ()
    absent: tuple[str, ...] = ()


def mentions_torch(data: bytes) -> bool:
    """Whether a file names torch, or a framework under which it may train without naming torch itself."""
    return any(name in data for name in _MENTIONED)


def look(path: str, data: bytes, detectors: Sequence[Detector]) -> Seen:
    """Shows the file PATH with the content DATA to DETECTORS. One that can be read and mentions no torch shows
    nothing.
    """
    try:
        text, unread = text_of(path, data)
        script = Script(path, text.data, text)
    except UnreadableError as reason:
        return Seen(inconclusive=(Inconclusive("source", reason.why, reason.unblock),), is_read=False)
    if not mentions_torch(data):
        return Seen()
    evidence: list[Evidence] = []
    inconclusive = [Inconclusive("source", why, "Mend the cell: the others are examined.") for why in unread]
    for outcome in perform([each for each in detectors if each.looks_at is not Trainings], script):
        if isinstance(outcome, Inconclusive):
            inconclusive.append(replace(outcome, why=f"{path}: {outcome.why}"))
        else:
            # what shows in a file that this one imports is said where that one is examined
            evidence += [each for each in dict.fromkeys(outcome.evidence) if each.place.path == path]
    shown = {each.detector for each in evidence}
    executed: list[Evidence] = []
    for outcome in perform([each for each in detectors if each.looks_at is Trainings], script):
        if isinstance(outcome, Inconclusive):  # one reason for all rules about the program: reported once
            told = replace(outcome, detector="source/execution", why=f"{path}: {outcome.why}")
            inconclusive += [told] if told not in inconclusive else []
        elif outcome.detector not in shown:  # what a rule about the file says is not said again
            executed += dict.fromkeys(outcome.evidence)
    unfinished = note_unfinished(script)
    if unfinished is not None:
        inconclusive.append(replace(unfinished, why=f"{path}: {unfinished.why}"))
    kept, complaints = applied(text, [*evidence, *(each for each in executed if each.place.path == path)])
    silenced = len(evidence) + sum(each.place.path == path for each in executed) - len(kept)
    links = script.links
    elsewhere = _not_silenced(script, [each for each in executed if each.place.path != path])
    linked = tuple((file.path.as_posix(), _digest(file.content)) for file in links.used.values())
    absent = tuple(each.as_posix() for each in links.absent)
    return Seen(kept, elsewhere, (*inconclusive, *complaints), silenced, linked=linked, absent=absent)


def _not_silenced(script: Script, elsewhere: Iterable[Evidence]) -> tuple[Evidence, ...]:
    """What was shown ELSEWHERE, without what a comment there silences."""
    found: dict[str, list[Evidence]] = {}
    for each in elsewhere:
        found.setdefault(each.place.path or "", []).append(each)
    texts = {script.links.shown(file.path): file.content for file in script.links.used.values()}
    mine = {path: applied(Text(path, texts[path]), items)[0] for path, items in found.items() if path in texts}
    return tuple(item for items in mine.values() for item in items)


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()


def text_of(path: str, data: bytes) -> tuple[Text, tuple[str, ...]]:
    """The Python of a file or notebook, and what of a notebook is none; raises UnreadableError."""
    if not path.endswith(".ipynb"):
        return Text(path, data), ()
    book = notebook.read(path, data)
    return book.text, book.unread


class Memory:
    """Files outside of every repository, one for each file examined, named by what was examined and by what.

    A memory that cannot be read or written costs time and nothing else.
    """

    def __init__(self, code: Iterable[Path], home: Path | None = None) -> None:
        """CODE: the files of the program that decide what is seen."""
        mark = blake2b(digest_size=8)
        for path in sorted(code):
            about = path.stat()
            mark.update(f"{path}\0{about.st_size}\0{about.st_mtime_ns}\0".encode("utf-8", "surrogateescape"))
        self.parent = home or Path(folder(), "check")
        self.home = self.parent / mark.hexdigest()

    def recall(self, path: str, data: bytes) -> Seen | None:
        """What PATH showed when it last had the content DATA, and the files linked to it theirs; None for no memory."""
        with suppress(OSError, msgspec.DecodeError, ValueError):
            seen = msgspec.json.decode(self._file(path, data).read_bytes(), type=Seen)
            is_same = all(_digest(Path(file).read_bytes()) == then for file, then in seen.linked)
            return seen if is_same and not any(is_module(Path(each)) for each in seen.absent) else None
        return None

    def keep(self, path: str, data: bytes, seen: Seen) -> None:
        target = self._file(path, data)
        with suppress(OSError, UnicodeEncodeError):
            if not self.home.exists():
                self._forget()
            target.parent.mkdir(parents=True, exist_ok=True)
            beside = target.with_suffix(f".{os.getpid()}.tmp")
            beside.write_bytes(msgspec.json.encode(seen))
            beside.replace(target)

    def _file(self, path: str, data: bytes) -> Path:
        # also by the folder in which it lies: what it imports lies there, too
        parts = (path, Path(path).absolute(), *confinement.folders(), "")
        whole = "\0".join(map(str, parts)).encode("utf-8", "surrogateescape")
        name = blake2b(whole + data, digest_size=16).hexdigest()
        return self.home / name[:2] / f"{name[2:]}.json"

    def _forget(self) -> None:
        """Only the memories of the last KEPT versions of the program stay."""
        if not self.parent.exists():
            return
        from shutil import rmtree

        homes = sorted(self.parent.iterdir(), key=lambda home: home.stat().st_mtime_ns, reverse=True)
        for old in homes[KEPT - 1 :]:
            rmtree(old, ignore_errors=True)
