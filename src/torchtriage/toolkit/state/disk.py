"""Every change that a save makes to a disk: one function for each kind of change, and no other way to make one.

`before` is told of each change before it is made, so that a campaign can kill the process there, keep a journal of what
the disk was asked for, or let the disk fail.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from torchtriage.toolkit.state.beside import Beside

LARGEST = 64 << 20  # bytes of one write: large enough to cost nothing, small enough to be hashed beside it
MOST = 512  # pieces of one write; Linux takes 1,024


class Change(NamedTuple):
    """One change of the disk. kind: mkdir create write fsync settle rename unlink rmdir; to: where a rename leads."""

    kind: str
    path: str
    to: str = ""
    data: tuple[memoryview, ...] = ()


before: Callable[[Change], None] | None = None
"""Told of each change before it is made; what it raises stands for an error of the disk."""


def _tell(kind: str, path: Path, to: str = "", data: Sequence[memoryview] = ()) -> None:
    if before is not None:
        before(Change(kind, str(path), to, tuple(data)))


def mkdir(path: Path) -> None:
    _tell("mkdir", path)
    os.mkdir(path)  # noqa: PTH102 - the plain system calls, in one place


def create(path: Path) -> int:
    """A new file to write; there must be none of its name, and no link either."""
    _tell("create", path)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0), 0o666)


def write(file: int, path: Path, pieces: Sequence[memoryview]) -> None:
    """All bytes of PIECES, in order."""
    _tell("write", path, data=pieces)
    left = [piece for piece in pieces if len(piece)]
    while left:
        done = os.writev(file, left[:MOST])
        while left and done >= len(left[0]):
            done -= len(left.pop(0))
        if done:
            left[0] = left[0][done:]


@contextmanager
def synced(file: int, path: Path) -> Iterator[None]:
    """All of FILE is on the disk when the block has ended, whose own changes go there at the same time."""
    _tell("fsync", path)
    with Beside(1, "syncing") as thread:
        done = thread.submit(os.fsync, file)
        yield
        done.result()


def settle(folder: Path) -> None:
    """The names in FOLDER are on the disk when this returns. What cannot promise that does not fail."""
    _tell("settle", folder)
    file = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | os.O_CLOEXEC)
    try:
        os.fsync(file)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    finally:
        os.close(file)


def rename(path: Path, to: Path) -> None:
    """PATH is called TO; fails where TO is a folder that holds anything."""
    _tell("rename", path, str(to))
    os.rename(path, to)  # noqa: PTH104


def unlink(path: Path) -> None:
    _tell("unlink", path)
    os.unlink(path)  # noqa: PTH108


def rmdir(path: Path) -> None:
    _tell("rmdir", path)
    os.rmdir(path)  # noqa: PTH106


def whole_file(path: Path, data: bytes, meanwhile: Callable[[], None] = lambda: None) -> None:
    """A new file with DATA in it, on the disk when this returns, but for its name; MEANWHILE is done by then, too."""
    file = create(path)
    try:
        write(file, path, [memoryview(data)])
        with synced(file, path):
            meanwhile()
    finally:
        os.close(file)


def remove(folder: Path) -> None:
    """FOLDER, which holds files only, is taken away; links are, and not what they lead to."""
    for each in sorted(folder.iterdir()):
        unlink(each)
    rmdir(folder)
