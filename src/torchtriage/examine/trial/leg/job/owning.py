"""Turns links of the mirror into files and folders of its own."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_PIECE = 1 << 24


def owned(place: str, work: str, path: str, *, empty: bool) -> None:
    """Every link on the way from WORK to PATH that leads out of PLACE becomes a folder of links, or a copy.

    EMPTY: nobody will read what the file holds, so it is not copied.
    """
    link = _leading_out(place, work, path)
    if link is None:
        return
    with _alone(place):
        while (link := _leading_out(place, work, path)) is not None:
            _replace(link, empty=empty and link == path)


def _leading_out(place: str, work: str, path: str) -> str | None:
    """The first link on the way from WORK to PATH that leads out of PLACE."""
    at = work
    for part in os.path.relpath(path, work).split(os.sep):
        at = os.path.join(at, part)
        if os.path.islink(at):
            real = os.path.realpath(at)
            if not real.startswith(f"{place}/"):
                return at if os.path.exists(real) else None
    return None


def _replace(link: str, *, empty: bool) -> None:
    real, beside = os.path.realpath(link), f"{link}.{os.getpid()}.own"
    if os.path.isdir(real):
        os.mkdir(beside)
        for name in os.listdir(real):
            os.symlink(os.path.join(real, name), os.path.join(beside, name))
        os.unlink(link)
        os.rename(beside, link)
        return
    mode = os.stat(real).st_mode & 0o777
    with open(beside, "wb") as target:
        if not empty:
            with open(real, "rb") as source:
                while piece := source.read(_PIECE):
                    target.write(piece)
    os.chmod(beside, mode | 0o200)
    os.replace(beside, link)


@contextmanager
def _alone(place: str) -> Iterator[None]:
    """Of the processes of a leg, one at a time."""
    import fcntl

    file = os.open(f"{place}/owning", os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)
