"""Which files and folders a client may name: those below the server's roots, and no others."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from torchtriage.core.errors import TriageError

LONGEST = 4096  # what Linux takes for a path
ENTRIES = 100_000  # of one folder that is read as a whole
MIB = 2**20
LEADS_OUT = "a link that leads out of the folders of this server"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


@dataclass(frozen=True)
class Roots:
    """The folders that are open, without links in their own paths; a relative path starts at the first."""

    folders: tuple[Path, ...]

    @classmethod
    def of(cls, given: Iterable[Path]) -> Roots:
        """Raises TriageError for a root that is no folder."""
        folders = tuple(dict.fromkeys(Path(os.path.realpath(each)) for each in given))
        for folder in folders:
            if not folder.is_dir():
                raise TriageError("not a folder", str(folder), "Name an existing folder with --root.")
        return cls(folders)

    @property
    def base(self) -> Path:
        """Where relative paths start; raises TriageError where no folder is open."""
        if not self.folders:
            raise refused("the client opens no folder of this server", "roots", "Open a folder below the server's.")
        return self.folders[0]

    def narrowed(self, uris: Iterable[str]) -> Roots:
        """What is below the client's roots too: a client can take away, never add."""
        theirs = [Path(os.path.realpath(path)) for uri in uris if (path := _of_uri(uri)) is not None]
        both = [_smaller(one, other) for one in self.folders for other in theirs]
        return Roots(tuple(dict.fromkeys(each for each in both if each is not None)))

    def path(self, given: str, start: Path | None = None) -> Path:
        """The file or folder that GIVEN names, free of links; raises TriageError for whatever is not open.

        START: where GIVEN starts if not at the first root.
        """
        _spelled(given)
        named = (start or self.base) / given
        real = Path(os.path.realpath(named))
        if not self.holds(real):
            raise self._outside(named, given)
        _opened(real, given)
        return real

    def folder(self, given: str) -> Path:
        """As `path`, of a folder."""
        real = self.path(given)
        if not real.is_dir():
            raise refused("not a folder", shown(given), "Name a folder.")
        return real

    def holds(self, real: Path) -> bool:
        """Whether REAL, a path without links, is one of the roots or below one."""
        return any(real.is_relative_to(folder) for folder in self.folders)

    def whole(self, given: str, limit: int) -> Path:
        """As `path`; a folder with all that is in it, but for links that lead out, which nobody may follow.

        LIMIT: bytes of all files together.
        """
        real, size = self.path(given), 0
        for count, each in enumerate(_below(real), start=1):
            size += self._size(each)
            if size > limit:
                raise _huge(shown(given), limit)
            if count > ENTRIES:
                do = "Name a folder with less in it."
                raise refused(f"the folder holds more than {ENTRIES:,} entries", shown(given), do)
        return real

    def each(self, files: Iterable[Path], limit: int) -> None:
        """Raises TriageError unless each of FILES that is inside is no larger than LIMIT bytes."""
        for file in files:
            if self._size(file) > limit:
                raise _huge(shown(str(file)), limit)

    def _size(self, path: Path) -> int:
        """The bytes of PATH, which was found in a folder; 0 for a link that leads out, which is not followed."""
        real = Path(os.path.realpath(path))
        return _opened(real, str(path)).st_size if self.holds(real) else 0

    def _outside(self, named: Path, given: str) -> TriageError:
        what = LEADS_OUT if self.holds(named) else "outside the folders of this server"
        return refused(what, shown(given), f"Name a path below {', '.join(map(str, self.folders))}.")


def refused(what: str, where: str, do: str) -> TriageError:
    """A call that is not carried out."""
    return TriageError(f"refused: {what}", where, do)


def shown(given: str) -> str:
    """GIVEN as it can stand in a message: on one line, and not endless."""
    said = repr(given)
    return said if len(said) <= 200 else f"{said[:200]}… ({len(given)} characters)"


def _spelled(given: str) -> None:
    """Raises TriageError for a path that is refused for its words alone."""
    for is_so, what, do in (
        (not given.strip(), "an empty path", "Name a file or folder, relative to the root."),
        (len(given) > LONGEST, f"a path of more than {LONGEST} characters", "Name an existing file or folder."),
        (not given.isprintable(), "a path with control characters", "Write the path in plain characters."),
        (bool(_SCHEME.match(given)), "URLs and drives are not read through MCP", "Name a local file by its path."),
        (given.startswith("~"), "~ is not expanded", "Write a path relative to the root."),
        (given.startswith("-"), "a path that looks like an option", f"Write ./{given[:20]} if it is a file."),
        ("\\" in given, "a backslash in a path", "Separate folders by /."),
        (".." in Path(given).parts, "a path with ..", "Write the path without it."),
    ):
        if is_so:
            raise refused(what, shown(given), do)


def _opened(real: Path, given: str) -> os.stat_result:
    """Raises TriageError for what is not there, and for all but regular files and folders."""
    try:
        found = real.stat()
    except OSError as error:
        do = "Name an existing file or folder, relative to the root."
        raise refused(f"cannot be opened: {error.strerror}", shown(given), do) from error
    if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
        do = "Name a regular file or a folder."
        raise refused("devices, pipes and sockets are not opened", shown(given), do)
    return found


def _below(path: Path) -> Iterator[Path]:
    """PATH itself if it is a file, else all that is in it; links to folders are named, not followed."""
    if not path.is_dir():
        yield path
        return
    for root, folders, names in os.walk(path):
        yield from (Path(root, name) for name in (*folders, *names))


def _huge(where: str, limit: int) -> TriageError:
    do = "Name something smaller, or use the command line, which has no such limit."
    return refused(f"larger than {limit // MIB} MiB, the most that is read through MCP", where, do)


def _of_uri(uri: str) -> str | None:
    """The path of a file:// URI of this machine; None for any other."""
    parts = urlsplit(uri)
    here = parts.scheme == "file" and parts.netloc in ("", "localhost") and "%00" not in parts.path
    return unquote(parts.path) if here and parts.path else None


def _smaller(one: Path, other: Path) -> Path | None:
    if other.is_relative_to(one):
        return other
    return one if one.is_relative_to(other) else None
