"""Which files are examined, and what all of them together showed."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from torchtriage.core.errors import NOTHING_EXAMINED, TriageError
from torchtriage.core.evidence import Evidence, Inconclusive, Observed, Outcome
from torchtriage.examine.detector import Detector, perform
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.text import UnreadableError

_SKIPPED = frozenset({"site-packages", "node_modules", "__pycache__"})


@dataclass(frozen=True, slots=True)
class Examined:
    """One Observed per detector over all files, then everything inconclusive; files: how many were examined."""

    outcomes: tuple[Outcome, ...]
    files: int


def examine(paths: Sequence[Path], detectors: Sequence[Detector]) -> Examined:
    """Shows every Python file under PATHS to DETECTORS.

    Raises TriageError when a path does not exist or no Python file is there. A file that is no readable Python is
    Inconclusive and the others are examined all the same.
    """
    merged = _Merged(detectors)
    for path in found(paths):
        with _whole_file_at_once():
            merged.add(path)
    return Examined(merged.outcomes(), merged.files)


def found(paths: Sequence[Path], code: int = NOTHING_EXAMINED) -> list[Path]:
    """The Python files under PATHS; raises TriageError, with CODE where none is there."""
    files = list(_files(paths))
    if not files:
        where = ", ".join(map(str, paths)) or "check"
        raise TriageError("no Python file is there", where, "Name a .py file, or a folder that holds some.", code)
    return files


@contextmanager
def _whole_file_at_once() -> Iterator[None]:
    """Holds the garbage collector back for one file.

    Everything made for a file dies with it. Collected in the middle, its tree and facts would be moved among the
    long-lived objects and stay. On torch's own files (bench/check.py) that is 1.8 times the cost of parsing, not 1.4.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class _Merged:
    """What the files examined so far have shown."""

    def __init__(self, detectors: Sequence[Detector]) -> None:
        self.detectors = detectors
        self.evidence: dict[str, dict[Evidence, None]] = {}
        self.inconclusive: list[Inconclusive] = []
        self.files = 0

    def add(self, path: Path) -> None:
        name = path.as_posix()
        shut = closed(path)
        if shut is not None:
            self.inconclusive.append(Inconclusive("source", f"{name}:1: {shut[0]}", shut[1]))
            return
        try:
            data = path.read_bytes()
            subject = Script(name, data) if b"torch" in data else None
        except OSError as error:
            why = f"{name}:1: cannot be read: {error.strerror}"
            self.inconclusive.append(Inconclusive("source", why, "Give permission to read it, or leave it out."))
            return
        except UnreadableError as reason:
            self.inconclusive.append(Inconclusive("source", reason.why, reason.unblock))
            return
        self.files += 1
        for outcome in perform(self.detectors, subject) if subject is not None else ():
            self._take(outcome, name)

    def _take(self, outcome: Outcome, name: str) -> None:
        if isinstance(outcome, Inconclusive):
            self.inconclusive.append(replace(outcome, why=f"{name}: {outcome.why}"))
        else:
            self.evidence.setdefault(outcome.detector, {}).update(dict.fromkeys(outcome.evidence))

    def outcomes(self) -> tuple[Outcome, ...]:
        """A detector that could look at no file has observed nothing."""
        blind = {each.detector for each in self.inconclusive} - self.evidence.keys()
        names = [each.name for each in self.detectors if self.files and each.name not in blind]
        observed = (Observed(name, tuple(sorted(self.evidence.get(name, ()), key=_where))) for name in names)
        return (*observed, *self.inconclusive)


def closed(path: Path) -> tuple[str, str] | None:
    """Why PATH is not opened at all, and what to do; None for a file that can be read as Python."""
    if path.is_symlink() and not path.exists():
        return f"the link's target {path.readlink().as_posix()} is missing", "Restore the target, or leave it out."
    if path.exists() and not path.is_file():
        return "no regular file: it is not opened", "Name a regular .py file, or leave it out."
    if path.suffix == ".ipynb":
        return "notebooks are not read", f"Convert it first: jupyter nbconvert --to script {path.as_posix()}"
    return None


def _where(item: Evidence) -> tuple[str, int, int, str]:
    return item.place.path or "", item.place.line or 0, item.place.column or 0, item.fact


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    """Files as they were named, folders walked by the alphabet; none twice."""
    seen: set[str] = set()
    for path in paths:
        if not path.exists() and not path.is_symlink():
            raise TriageError("no such file or folder", str(path), "Name a Python file or a folder that holds some.")
        for file in _under(path) if path.is_dir() else (path,):
            real = os.path.realpath(file)  # Path.resolve raises for a link that leads to itself
            if real not in seen:
                seen.add(real)
                yield file


def _under(folder: Path) -> Iterator[Path]:
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not _is_skipped(Path(root, name)))
        yield from (Path(root, name) for name in sorted(names) if name.endswith(".py") or _is_notebook(root, name))


def _is_notebook(root: str, name: str) -> bool:
    """A notebook that mentions torch; one that cannot be read may do so."""
    if not name.endswith(".ipynb"):
        return False
    path = Path(root, name)
    try:
        return not path.is_file() or b"torch" in path.read_bytes()
    except OSError:
        return True


def _is_skipped(folder: Path) -> bool:
    """Hidden folders, virtual environments and what others have installed or compiled."""
    return folder.name.startswith(".") or folder.name in _SKIPPED or (folder / "pyvenv.cfg").exists()
