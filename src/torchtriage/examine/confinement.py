"""The folders beyond which no link is followed, where someone else names the paths: a client of the MCP server."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

VARIABLE = "TORCHTRIAGE_WITHIN"
"""The folders for a process of its own, separated as those of PATH. It can only narrow what is read."""
WHY = "a link that leads out of the folders of this server: it is not followed"
DO = "Nothing, if that is meant; else open the folder to which it leads with --root."
_within: ContextVar[tuple[str, ...] | None] = ContextVar("within", default=None)


@contextmanager
def within(folders: Iterable[Path]) -> Iterator[None]:
    """What is read in this block stays below FOLDERS, which are free of links themselves."""
    token = _within.set(tuple(map(str, folders)))
    try:
        yield
    finally:
        _within.reset(token)


def folders() -> tuple[str, ...]:
    """The folders that hold now; () where whoever names the paths may read whatever the process can."""
    set_here = _within.get()
    return set_here if set_here is not None else tuple(filter(None, os.environ.get(VARIABLE, "").split(os.pathsep)))


def leads_out(path: str | Path) -> bool:
    """Whether PATH, through a link of its own or of a folder above it, lies outside of the folders that hold now."""
    allowed = folders()
    if not allowed:
        return False
    real = Path(os.path.realpath(path))
    return not any(real.is_relative_to(folder) for folder in allowed)
