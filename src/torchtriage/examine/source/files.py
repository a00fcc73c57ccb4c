"""Which files are examined, and what all of them together showed."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from torchtriage.core.errors import NOTHING_EXAMINED, TriageError
from torchtriage.core.evidence import Evidence, Inconclusive, Observed, Outcome
from torchtriage.examine.confinement import DO, WHY, leads_out
from torchtriage.examine.detector import Detector
from torchtriage.examine.source.ignored import Ignored
from torchtriage.examine.source.project import forget_places
from torchtriage.examine.source.seen import Memory, Seen, look, mentions_torch

STDIN = Path("-")


def named(path: str | Path) -> Path:
    """The path that was given: only a bare "-" is stdin, "./-" is a file."""
    given = Path(path)
    return given.absolute() if given == STDIN and str(path) != "-" else given


_SKIPPED = frozenset({"site-packages", "node_modules", "__pycache__"})
_BATCH = 16


class Examined(Struct, frozen=True):
    """One Observed per detector over all files, then everything inconclusive; files: how many were examined.

    silenced: how many places a comment in the source silenced.
    """

    outcomes: tuple[Outcome, ...]
    files: int
    silenced: int = 0


class Means(Struct, frozen=True):
    """How files are examined. stdin: what stands for the path "-". memory: what was seen before. jobs: processes.

    passes_over: of a file that was found in a folder, whether the user's settings leave it out. asked: files that were
    named one by one: they are read even where they mention no torch.
    """

    stdin: bytes = b""
    memory: Memory | None = None
    jobs: int = 1
    passes_over: Callable[[Path], bool] = lambda _: False
    asked: frozenset[Path] = frozenset()


def examine(paths: Sequence[Path], detectors: Sequence[Detector], means: Means | None = None) -> Examined:
    """Shows every Python file and notebook under PATHS to DETECTORS.

    Raises TriageError when a path does not exist or no Python file is there. A file that is no readable Python is
    Inconclusive and the others are examined all the same.
    """
    forget_places()
    means = replace(means or Means(), asked=frozenset(paths))
    files = found(paths, passes_over=means.passes_over)
    merged = _Merged(detectors, {each.as_posix() for each in files})
    for seen in _shown(files, detectors, means):
        merged.add(seen)
    return Examined(merged.outcomes(), merged.files, merged.silenced)


def _shown(files: Sequence[Path], detectors: Sequence[Detector], means: Means) -> Iterator[Seen | Inconclusive]:
    """What each of FILES showed, in their order."""
    jobs = min(means.jobs, len(files) // _BATCH + 1)
    if jobs == 1 or not hasattr(os, "fork"):
        yield from map(partial(_look, detectors, means), files)
        return
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(jobs, context, _take, (detectors, means)) as pool:
        for seen in pool.map(_looks, _portions(files)):
            yield from seen


_taken: tuple[Sequence[Detector], Means] = ((), Means())


def _take(detectors: Sequence[Detector], means: Means) -> None:
    """A process that was forked keeps what it is to show, and how."""
    global _taken  # noqa: PLW0603 - detectors are functions of any module: they cannot be sent
    _taken = (detectors, means)


def _looks(files: Sequence[Path]) -> list[Seen | Inconclusive]:
    return [_look(*_taken, file) for file in files]


def _portions(files: Sequence[Path]) -> Iterator[Sequence[Path]]:
    yield from (files[start : start + _BATCH] for start in range(0, len(files), _BATCH))


def _look(detectors: Sequence[Detector], means: Means, path: Path) -> Seen | Inconclusive:
    """What PATH showed; Inconclusive where it could not even be opened."""
    name = path.as_posix()
    shut = closed(path)
    if shut is not None:
        return Inconclusive("source", f"{name}:1: {shut[0]}", shut[1])
    try:
        data = means.stdin if path == STDIN else path.read_bytes()
    except OSError as error:
        why = f"{name}:1: cannot be read: {error.strerror}"
        return Inconclusive("source", why, "Give permission to read it, or leave it out.")
    if path not in means.asked and not mentions_torch(data):
        return Seen()
    known = means.memory.recall(name, data) if means.memory is not None else None
    if known is not None:
        return known
    with _whole_file_at_once():
        seen = look(name, data, detectors)
    if means.memory is not None:
        means.memory.keep(name, data, seen)
    return seen


def found(
    paths: Sequence[Path], code: int = NOTHING_EXAMINED, passes_over: Callable[[Path], bool] = lambda _: False
) -> list[Path]:
    """The Python files and notebooks under PATHS; raises TriageError, with CODE where none is there."""
    files = list(_files(paths, passes_over))
    if not files:
        where = ", ".join(map(str, paths)) or "check"
        do = (
            "Name a .py file, or a folder that holds some. What .gitignore leaves out is examined by its own name only."
        )
        raise TriageError("no Python file is there", where, do, code)
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

    def __init__(self, detectors: Sequence[Detector], names: Set[str]) -> None:
        """NAMES: of all files that are examined; what shows in others of their project is not asked for."""
        self.detectors, self.names = detectors, names
        self.evidence: dict[str, dict[Evidence, None]] = {}
        self.elsewhere: list[Evidence] = []
        self.inconclusive: list[Inconclusive] = []
        self.files = self.silenced = 0

    def add(self, seen: Seen | Inconclusive) -> None:
        if isinstance(seen, Inconclusive):
            self.inconclusive.append(seen)
            return
        self.files += seen.is_read
        self.silenced += seen.silenced
        self.inconclusive += seen.inconclusive
        for item in seen.evidence:
            self.evidence.setdefault(item.detector, {})[item] = None
        self.elsewhere += (each for each in seen.elsewhere if each.place.path in self.names)

    def outcomes(self) -> tuple[Outcome, ...]:
        """A detector that could look at no file has observed nothing.

        What a program shows in another file is left out where that file, or another program, has shown it already.
        """
        shown = {(each.detector, each.place.path, each.place.line) for one in self.evidence.values() for each in one}
        for item in self.elsewhere:
            key = item.detector, item.place.path, item.place.line
            if key not in shown:
                shown.add(key)
                self.evidence.setdefault(item.detector, {})[item] = None
        blind = {each.detector for each in self.inconclusive} - self.evidence.keys()
        known = dict.fromkeys(each.name for each in self.detectors)  # one fault may be shown by several looks
        names = [each for each in known if self.files and each not in blind]
        observed = (Observed(name, tuple(sorted(self.evidence.get(name, ()), key=_where))) for name in names)
        return (*observed, *self.inconclusive)


def closed(path: Path) -> tuple[str, str] | None:
    """Why PATH is not opened at all, and what to do; None for a file that can be read as Python."""
    if path == STDIN:
        return None
    if leads_out(path):
        return WHY, DO
    if path.is_symlink() and not path.exists():
        return f"the link's target {path.readlink().as_posix()} is missing", "Restore the target, or leave it out."
    if path.exists() and not path.is_file():
        return "no regular file: it is not opened", "Name a regular .py file, or leave it out."
    return None


def _where(item: Evidence) -> tuple[str, int, int, int, str]:
    return item.place.path or "", item.place.cell or 0, item.place.line or 0, item.place.column or 0, item.fact


def _files(paths: Iterable[Path], passes_over: Callable[[Path], bool]) -> Iterator[Path]:
    """Files as they were named, folders walked by the alphabet; none twice."""
    seen: set[str] = set()
    for path in paths:
        if path != STDIN and not path.exists() and not path.is_symlink():
            raise TriageError("no such file or folder", str(path), "Name a Python file or a folder that holds some.")
        for file in _under(path, passes_over) if path.is_dir() else (path,):
            real = os.path.realpath(file)  # Path.resolve raises for a link that leads to itself
            if real not in seen:
                seen.add(real)
                yield file


def _under(folder: Path, passes_over: Callable[[Path], bool]) -> Iterator[Path]:
    ignored = Ignored(folder)
    for root, folders, names in os.walk(folder):
        here = Path(root)
        folders[:] = sorted(
            name for name in folders if not _is_skipped(here / name) and not ignored.holds(here / name, is_folder=True)
        )
        for name in sorted(names):
            file = here / name
            if name.endswith((".py", ".ipynb")) and not ignored.holds(file) and not passes_over(file):
                yield file


def _is_skipped(folder: Path) -> bool:
    """Hidden folders, virtual environments and what others have installed or compiled."""
    return folder.name.startswith(".") or folder.name in _SKIPPED or (folder / "pyvenv.cfg").exists()
