"""Files that are read at places: of what is large only the few bytes that tell of the rest."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from torchtriage.examine.artefact.opened import INSIDE, Opened, Unreadable, filesystem, is_url

PACKED = 2**28
"""Bytes that a file in gzip or in an archive may give: it is unpacked into memory."""


class Damaged(Exception):
    """The file is not what it began as. at: the byte; rescue: what can still be had of it, "" where nothing can."""

    def __init__(self, why: str, at: int = 0, rescue: str = "") -> None:
        super().__init__(why)
        self.why, self.at, self.rescue = why, at, rescue


class Source:
    """SIZE bytes of a file from BASE on. taken: bytes that were read. is_plain: a file of this machine, as it is."""

    def __init__(self, file: IO[bytes], size: int, base: int = 0, *, is_plain: bool = True) -> None:
        self._file, self.size, self.base, self.taken, self.is_plain = file, size, base, 0, is_plain

    def at(self, start: int, size: int) -> bytes:
        """SIZE bytes from START on, fewer where the source ends."""
        size = max(min(size, self.size - start), 0)
        self._file.seek(self.base + start)
        data = self._file.read(size)
        while data and len(data) < size and (more := self._file.read(size - len(data))):
            data += more  # a file without a buffer may give less than it was asked for
        self.taken += len(data)
        return data

    def part(self, start: int, size: int) -> Source:
        """SIZE bytes of it, as a source of their own."""
        return Source(self._file, max(min(size, self.size - start), 0), self.base + start)


@contextmanager
def reading(path: str) -> Iterator[Source]:
    """The file at PATH, local or at a URL, while it is read; raises Unreadable where it cannot be opened."""
    file, size = _open(path)
    try:
        yield Source(file, size, is_plain=hasattr(file, "readall"))  # a file without a buffer: of the disk
    finally:
        file.close()


def _open(path: str) -> tuple[IO[bytes], int]:
    if is_url(path):
        return _remote(path)
    if INSIDE in path and not os.path.lexists(path):
        return _unpacked(path)
    try:
        if not stat.S_ISREG(Path(path).stat().st_mode):
            raise Unreadable("it is a device, a pipe, a socket or a folder", "Name a regular file.")
        file: Any = Path(path).open("rb", buffering=0)  # noqa: SIM115 - closed by `reading`
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise Unreadable(f"it cannot be opened: {why}", "Name a file that is there and can be read.") from error
    size = os.fstat(file.fileno()).st_size
    if file.read(2) == b"\x1f\x8b":
        file.close()
        return _unpacked(path)
    return file, size


def _unpacked(path: str) -> tuple[IO[bytes], int]:
    from io import BytesIO

    with Opened(path) as opened:
        data = opened.read(PACKED + 1)
        if len(data) > PACKED:
            raise Unreadable(f"it unpacks to more than {PACKED:,} bytes", "Unpack it by hand, then read it.")
        if opened.broken:
            raise Unreadable(opened.broken, "Copy it again.")
    return BytesIO(data), len(data)


def _remote(path: str) -> tuple[IO[bytes], int]:
    """A file of fsspec fetches the ranges that are read."""
    system, inner = filesystem(path)
    try:
        file: Any = system.open(inner, "rb")
        return file, int(file.size)
    except Exception as error:
        why = f"it cannot be opened at places: {type(error).__name__}: {error}"[:300]
        raise Unreadable(why, "Fetch it, then read the copy.") from error


def inside(folder: str, name: object) -> str:
    """The path of NAME in FOLDER; "" where it would lead out of it."""
    plain = isinstance(name, str) and 0 < len(name) < 1024 and "\0" not in name
    if not plain or os.path.isabs(str(name)) or ".." in str(name).replace("\\", "/").split("/"):  # noqa: PTH117
        return ""
    return os.path.join(folder, str(name))  # noqa: PTH118 - the folder as it was named
