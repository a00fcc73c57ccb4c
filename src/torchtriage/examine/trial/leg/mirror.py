"""A folder that looks like the user's, on which legs run: relative paths lead there, and writes stay there."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from torchtriage.core.errors import NOTHING_EXAMINED, TriageError

OWN = "{leg}"  # in the words of a command: the leg's own folder
SMALL = 4 << 20  # bytes up to which any file is copied: scripts above all, whose place Python resolves
WRITTEN = 256 << 20  # bytes up to which one of the kinds that jobs write is copied
IN_ALL = 2 << 30  # bytes that are copied; what comes after is linked
MANY = 5000  # entries from which a folder, of a data set most likely, is linked whole
KINDS = (
    ".pt", ".pth", ".ckpt", ".bin", ".safetensors", ".distcp", ".metadata", ".pkl", ".pickle", ".npz", ".npy", ".h5",
    ".json", ".jsonl", ".yaml", ".yml", ".csv", ".tsv", ".txt", ".log", ".db", ".sqlite", ".lock",
)  # fmt: skip
WHOLE = frozenset({".git", ".hg", "node_modules"})  # linked as they are
LEFT_OUT = frozenset({"torchtriage-runs", "__pycache__"})


@dataclass(frozen=True)
class Mirror:
    """SOURCE as legs see it. place: holds all that legs write; work: their working folder; temporary: for tempfile."""

    source: Path
    place: Path
    temporary: Path
    linked: dict[Path, tuple[int, int]] = field(default_factory=dict)  # originals behind links: size, time of change

    @property
    def work(self) -> Path:
        return self.place / "work"

    def words(self, command: Sequence[str]) -> tuple[str, ...]:
        """COMMAND for this mirror: {leg} is its folder, and so is SOURCE where a word names it by its whole path."""
        first, *others = (word.replace(OWN, str(self.work)) for word in command)
        return (first, *(self._here(word) for word in others))

    def _here(self, word: str) -> str:
        head, equals, tail = word.partition("=") if word.startswith("-") and "=" in word else ("", "", word)
        path = Path(tail)
        if not path.is_relative_to(self.source) or path.is_relative_to(self.place):
            return word
        return f"{head}{equals}{self.work / path.relative_to(self.source)}"

    def edit(self, path: str, data: bytes) -> bool:
        """Puts DATA in the place of the file PATH of the working folder; False where that would be the user's own file,
        as in a folder that is linked whole.
        """
        file = self.work / path
        if not file.parent.resolve().is_relative_to(self.work.resolve()):
            return False
        file.unlink(missing_ok=True)  # a large one is a link
        file.write_bytes(data)
        return True

    def changed(self) -> list[Path]:
        """Originals behind links that are no longer as they were when they were linked."""
        return sorted(path for path, before in self.linked.items() if _about(path) != before)


@contextmanager
def mirrored(place: Path, source: Path | None = None, *, keep: bool = False) -> Iterator[Mirror]:
    """A mirror of SOURCE (the working folder) in PLACE, which must not be there yet; gone at the end unless KEEP.

    Folders are folders; small files, and those of kinds that jobs write, are copies; large ones are links, which the
    guard inside the job turns into copies before anything is written through them.

    Raises TriageError where PLACE cannot be made or there is no room.
    """
    source, place = (source or Path.cwd()).resolve(), place.absolute()
    temporary = Path(tempfile.mkdtemp(prefix="tt-"))  # a short name: sockets in it have 108 bytes for theirs
    mirror, is_ours = Mirror(source, place, temporary), False
    try:
        place.mkdir(parents=True)
        is_ours = True
        _Copying(mirror).folder(source, mirror.work)
        yield mirror
    except (FileExistsError, shutil.Error, PermissionError) as error:
        raise _refused(place, error) from error
    except OSError as error:
        if error.filename is None or not str(error.filename).startswith(str(place)):
            raise
        raise _refused(place, error) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        if is_ours and not keep:  # what was there before is the user's
            shutil.rmtree(place, ignore_errors=True)


def _refused(place: Path, error: BaseException) -> TriageError:
    why = getattr(error, "strerror", None) or str(error)
    do = "Name another folder, with room for a copy of your files, with --out."
    return TriageError(f"the working folder cannot be mirrored there: {why}", str(place), do, NOTHING_EXAMINED)


class _Copying:
    def __init__(self, mirror: Mirror) -> None:
        self.mirror, self.room = mirror, IN_ALL

    def folder(self, source: Path, target: Path) -> None:
        target.mkdir()
        with os.scandir(source) as entries:
            for entry in sorted(entries, key=lambda each: each.name):
                try:
                    self._entry(entry, target / entry.name)
                except PermissionError:
                    continue  # what the user cannot read, the job cannot either
                except FileNotFoundError:
                    if os.path.lexists(entry.path):  # a link that leads nowhere is there, too
                        raise  # else it has gone since it was listed, as a log that is rotated

    def _entry(self, entry: os.DirEntry[str], target: Path) -> None:
        if entry.name in LEFT_OUT or Path(entry.path) == self.mirror.place:
            return
        if entry.is_symlink():
            self._link_again(Path(entry.path), target)
        elif entry.is_dir():
            self._folder(Path(entry.path), target)
        elif entry.is_file():
            self._file(Path(entry.path), target, entry.stat().st_size)

    def _folder(self, source: Path, target: Path) -> None:
        inside = self.mirror.place.is_relative_to(source)
        whole = source.name in WHOLE or (source / "pyvenv.cfg").is_file() or (not inside and _has_many(source))
        if inside and source == self.mirror.place.parent:
            target.mkdir()  # the folder of the trial itself
        elif whole:
            target.symlink_to(source)
        else:
            self.folder(source, target)

    def _link_again(self, source: Path, target: Path) -> None:
        """A link within the folder leads to the same name in the mirror; one that leads out, to where it led."""
        to = source.readlink()
        resolved = source.resolve()
        inside = resolved.is_relative_to(self.mirror.source)
        if inside and not to.is_absolute():
            target.symlink_to(to)
        elif inside:
            target.symlink_to(self.mirror.work / resolved.relative_to(self.mirror.source))
        else:
            target.symlink_to(resolved)
            self._remember(resolved)

    def _file(self, source: Path, target: Path, size: int) -> None:
        small = size <= (WRITTEN if source.suffix in KINDS else SMALL)
        if small and size <= self.room:
            self.room -= size
            shutil.copy2(source, target)
        else:
            target.symlink_to(source)
            self._remember(source)

    def _remember(self, path: Path) -> None:
        about = _about(path)
        if about is not None:
            self.mirror.linked[path] = about


def _has_many(folder: Path) -> bool:
    with suppress(OSError), os.scandir(folder) as entries:
        return sum(1 for _ in zip(entries, range(MANY), strict=False)) == MANY
    return False


def _about(path: Path) -> tuple[int, int] | None:
    try:
        about = path.stat()
    except OSError:
        return None
    return (about.st_size, about.st_mtime_ns) if stat.S_ISREG(about.st_mode) else None


def caches() -> list[Path]:
    """Folders in which libraries keep what they may write anew at any time: a leg may, too."""
    named = ("XDG_CACHE_HOME", "HF_HOME", "TORCH_HOME", "TRITON_CACHE_DIR", "MPLCONFIGDIR", "PYTHONPYCACHEPREFIX")
    given = [Path(value) for name in named if (value := os.environ.get(name))]
    home = [Path.home() / name for name in (".cache", ".config", ".triton", ".nv", ".local")]
    return [path.resolve() for path in (*given, *home, Path(sys.prefix))]
