"""A file, a member of an archive or a URL, opened to be read once through. Where it breaks, it ends and says why."""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from zipfile import ZipFile

CHUNK = 2**20
"""Bytes that are read at once."""
RATIO, FROM = 500, 2**26
"""A packed file that has given 64 MiB may not have given more than 500 times what was read of it: a trace gives some
20 times, a log that says one line over and over some 200 times, and what deflate can do at most is 1,032."""
MOST = 2**36
"""Bytes that a packed file may give at all."""
INSIDE = "!/"
"""Between the path of an archive and that of a file in it."""
_GZIP = b"\x1f\x8b"
_FIRST = 2**12  # bytes that are read to see what it is


class Unreadable(Exception):
    """A path that cannot be opened. why: in words, do: the way out."""

    def __init__(self, why: str, do: str) -> None:
        super().__init__(why)
        self.why, self.do = why, do


class Opened:
    """The bytes of PATH, unpacked where they begin as gzip does.

    broken: why no more came, though the file was not at its end; "" as long as it is whole. taken: bytes read of what
    is stored, given: bytes handed out. size: bytes stored, None where nobody tells. Raises Unreadable where there is
    nothing to open.
    """

    def __init__(self, path: str) -> None:
        self.path, self.broken, self.taken, self.given = path, "", 0, 0
        self._file, self.size = _source(path)
        self._packed = INSIDE in path and not is_url(path)
        self._head = self._some(_FIRST)
        self._unzip: Any = zlib.decompressobj(31) if self._head.startswith(_GZIP) else None
        self._left = b""

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def chunks(self, size: int = CHUNK) -> Iterator[bytes]:
        """What is left, at most SIZE bytes at a time."""
        while piece := self.read(size):
            yield piece

    def read(self, size: int = CHUNK) -> bytes:
        """The next SIZE bytes, fewer only at the end."""
        parts, missing = [], size
        while missing > 0 and (piece := self._next(missing)):
            parts.append(piece)
            missing -= len(piece)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _next(self, most: int) -> bytes:
        if self.broken:
            return b""
        piece = self._plain(most) if self._unzip is None else self._unzipped(most)
        self.given += len(piece)
        packed = self._packed or self._unzip is not None
        if packed and self.given > FROM and self.given > min(RATIO * max(self.taken, 1), MOST):
            self.broken = f"it unpacks to more than {RATIO} times its size, or than {MOST // 2**30} GiB"
        return piece

    def _plain(self, most: int) -> bytes:
        piece = self._head or self._some(most)
        self._head = piece[most:]
        return piece[:most]

    def _unzipped(self, most: int) -> bytes:
        """One piece of what gzip holds; members may follow each other."""
        while True:
            data = self._left or self._head or self._some(CHUNK)
            self._head = b""
            if self._unzip.eof:
                if not data.startswith(_GZIP):  # the end, or the zeros with which a tape pads
                    return b""
                self._unzip = zlib.decompressobj(31)
            try:
                piece: bytes = self._unzip.decompress(data, most)
            except zlib.error as error:
                self.broken = f"the gzip stream is damaged: {error}"
                return b""
            self._left = self._unzip.unconsumed_tail or self._unzip.unused_data
            if not data and not piece and not self._unzip.eof:
                self.broken = self.broken or "the gzip stream ends before its end"
                return b""
            if piece:
                return piece

    def _some(self, size: int) -> bytes:
        """The next bytes as they are stored; an error of the medium is a break."""
        try:
            piece = self._file.read(size)
        except Exception as error:  # noqa: BLE001 - any file system, any archive; it is told in its own words
            self.broken = f"reading ended with {type(error).__name__}: {error}"[:300]
            return b""
        self.taken += len(piece)
        if self._packed:
            self.taken = _stored(self._file, self.taken)
        return piece or b""


def is_url(path: str) -> bool:
    """Whether PATH is for fsspec: s3://, gs://, memory://."""
    head = path.partition("://")
    return bool(head[1]) and head[0].replace("::", "").replace("+", "").replace("-", "").isalnum()


def _source(path: str) -> tuple[IO[bytes], int | None]:
    if is_url(path):
        return _remote(path)
    outer, inside, inner = path.partition(INSIDE)
    if inside and not os.path.lexists(path):
        return _member(outer, inner)
    try:
        found = Path(path).stat()
        if not stat.S_ISREG(found.st_mode):
            raise Unreadable("it is a device, a pipe, a socket or a folder", "Name a regular file.")
        return Path(path).open("rb"), found.st_size
    except (OSError, ValueError) as error:  # ValueError: a null byte in the path
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise Unreadable(f"it cannot be opened: {why}", "Name a file that is there and can be read.") from error


def archive(path: str) -> ZipFile:
    """The zip file at PATH, its directory read once for as long as the file stays as it is.

    Reading the directory takes time in proportion to the members: once for each of them is quadratic. Raises whatever
    zipfile makes of the bytes. Handles stay open until close_archives().
    """
    found = Path(path).stat()
    # A process that forks shares its files' positions with its child: the child opens its own.
    return _archive(path, (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns), os.getpid())


@lru_cache(maxsize=4)
def _archive(path: str, _state: tuple[int, ...], _process: int) -> ZipFile:
    from zipfile import ZipFile

    return ZipFile(path)


def close_archives() -> None:
    """Lets go of the zip files that archive() has opened; members that are being read stay readable."""
    _archive.cache_clear()


def _member(path: str, name: str) -> tuple[IO[bytes], int | None]:
    try:
        whole = archive(path)
        told = whole.getinfo(name)
        return whole.open(told), told.file_size
    except Exception as error:  # zipfile raises whatever its bytes lead to
        why = f"it cannot be taken out of the archive: {type(error).__name__}: {error}"[:300]
        raise Unreadable(why, "Unpack the archive.") from error


def _stored(file: Any, read: int) -> int:
    """How much of an archive was read for what its member gave; READ where it does not tell."""
    compressed, left = getattr(file, "_orig_compress_size", None), getattr(file, "_compress_left", None)
    return compressed - left if isinstance(compressed, int) and isinstance(left, int) else read


def _remote(path: str) -> tuple[IO[bytes], int | None]:
    system, inner = filesystem(path)
    try:
        file: IO[bytes] = system.open(inner, "rb")
    except Exception as error:
        raise Unreadable(f"it cannot be opened: {type(error).__name__}: {error}"[:300], _REMOTE) from error
    size = getattr(file, "size", None)
    return file, size if isinstance(size, int) else None


_REMOTE = "See that the URL is right and that this machine may read it."


def filesystem(path: str) -> tuple[Any, str]:
    """The file system of a URL and the path in it; raises Unreadable where it needs what is not installed."""
    import fsspec.core

    try:
        system, inner = fsspec.core.url_to_fs(path)
    except ImportError as error:
        raise Unreadable(f"it needs a package that is not installed: {error}", "Install it.") from error
    except Exception as error:
        raise Unreadable(f"no file system for it: {type(error).__name__}: {error}"[:300], _REMOTE) from error
    return system, str(inner)
