"""Compile once: a JSON file outside every repository, named by the content it was compiled from."""

# Plain strings: see catalog/walk.py.
# ruff: noqa: PTH118, PTH123, PTH103, PTH105, PTH108, PTH111

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TypeVar
from zlib import adler32, crc32

import msgspec

from torchtriage.catalog.walk import SOURCE, ending

T = TypeVar("T")


def folder() -> str:
    """The user's cache folder by the habit of the platform; XDG_CACHE_HOME decides where it is set."""
    home = os.path.expanduser("~")
    habit = {
        "win32": os.environ.get("LOCALAPPDATA") or os.path.join(home, "AppData", "Local"),
        "darwin": os.path.join(home, "Library", "Caches"),
    }
    chosen = os.environ.get("XDG_CACHE_HOME") or habit.get(sys.platform) or os.path.join(home, ".cache")
    return os.path.join(chosen, "torchtriage")


def compiled(name: str, files: Iterable[str], kind: type[T], build: Callable[[], T]) -> T:
    """What BUILD makes of FILES, from the cache when the same content was compiled before.

    A cache that is missing, unreadable or damaged costs time and nothing else.
    """
    target = os.path.join(folder(), f"{name}-{_digest(files)}.json")
    with suppress(OSError, msgspec.DecodeError, ValueError):
        return msgspec.json.decode(_content(target), type=kind)
    made = build()
    with suppress(OSError):  # a read-only or full home: the next call compiles again
        _write(target, msgspec.json.encode(made), stale=f"{name}-")
    return made


def _digest(files: Iterable[str]) -> str:
    """Of the files' content, and of the size and time of the code that compiles it.

    Two checksums and the length, not a cryptographic hash: the content is our own, and loading OpenSSL for it costs
    a cold `ask` 5 ms of the 40 that it may take.
    """
    whole = bytearray()
    for path in files:
        data = _content(path)
        whole += f"{path}\0{len(data)}\0".encode("utf-8", "surrogateescape") + data
    for folder in ("catalog", "core", "routing"):
        for path in ending(os.path.join(SOURCE, folder), ".py"):
            about = os.stat(path)  # noqa: PTH116 - see above
            whole += f"{path}\0{about.st_size}\0{about.st_mtime_ns}\0".encode("utf-8", "surrogateescape")
    return f"{crc32(whole):08x}{adler32(whole):08x}{len(whole):08x}"


def _content(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _write(target: str, data: bytes, stale: str) -> None:
    home = os.path.dirname(target)  # noqa: PTH120 - see above
    os.makedirs(home, exist_ok=True)
    beside = f"{target}.{os.getpid()}.tmp"
    with open(beside, "wb") as file:
        file.write(data)
    os.replace(beside, target)
    for old in ending(home, ".json"):
        if old != target and os.path.basename(old).startswith(stale):  # noqa: PTH119 - see above
            with suppress(FileNotFoundError):  # another process was first
                os.unlink(old)
