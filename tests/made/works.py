"""What a file says of itself, and what happens to the process that reads it: for tests of engines."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Event

from msgspec import Struct

from torchtriage.examine.artefact.opened import Opened, Unreadable


class Said(Struct, frozen=True):
    path: str
    text: str


def said(path: str) -> Said:
    """The text of a file; one whose name begins with "dies", "hangs", "fails" or "shut" does that instead."""
    name = Path(path).name
    if name.startswith("once"):
        mark = Path(f"{path}.mark")
        if not mark.exists():
            mark.touch()
            os._exit(9)
    if name.startswith("dies"):
        os._exit(9)
    if name.startswith("hungry"):
        raise MemoryError
    if name.startswith("hangs"):
        Event().wait()
    if name.startswith("fails"):
        raise ZeroDivisionError
    if name.startswith("shut"):
        raise Unreadable("it is shut", "Open it.")
    with Opened(path) as file:
        return Said(path, file.read().decode())


def summary(path: str) -> object:
    """A trace's, but for a file whose name begins with "dies"."""
    from torchtriage.examine.artefact import trace

    if Path(path).name.startswith("dies"):
        os._exit(9)
    return trace.summary(path)
