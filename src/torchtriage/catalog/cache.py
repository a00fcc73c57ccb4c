"""Compile once: a JSON file outside every repository, named by the content it was compiled from."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar
from zlib import adler32, crc32

import msgspec

T = TypeVar("T")


def folder() -> Path:
    """The user's cache folder by the habit of the platform; XDG_CACHE_HOME decides where it is set."""
    home = Path.home()
    habit = {
        "win32": Path(os.environ.get("LOCALAPPDATA", home / "AppData/Local")),
        "darwin": home / "Library/Caches",
    }
    return Path(os.environ.get("XDG_CACHE_HOME") or habit.get(sys.platform, home / ".cache")) / "torchtriage"


def compiled(name: str, files: Iterable[Path], kind: type[T], build: Callable[[], T]) -> T:
    """What BUILD makes of FILES, from the cache when the same content was compiled before.

    A cache that is missing, unreadable or damaged costs time and nothing else.
    """
    target = folder() / f"{name}-{_digest(files)}.json"
    with suppress(OSError, msgspec.DecodeError, ValueError):
        return msgspec.json.decode(target.read_bytes(), type=kind)
    made = build()
    with suppress(OSError):  # a read-only or full home: the next call compiles again
        _write(target, msgspec.json.encode(made), stale=f"{name}-*.json")
    return made


def _digest(files: Iterable[Path]) -> str:
    """Of the code that compiles, too: a new version never reads an old form.

    Two checksums and the length, not a cryptographic hash: the content is our own, and loading OpenSSL for it costs
    a cold `ask` 5 ms of the 40 that it may take.
    """
    code = [path for folder in ("catalog", "core", "routing") for path in (_HERE.parent / folder).glob("*.py")]
    whole = bytearray()
    for path in sorted({*files, *code}):
        data = path.read_bytes()
        whole += f"{path.name}\0{len(data)}\0".encode() + data
    return f"{crc32(whole):08x}{adler32(whole):08x}{len(whole):08x}"


def _write(target: Path, data: bytes, stale: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_suffix(f".{os.getpid()}.tmp")
    beside.write_bytes(data)
    beside.replace(target)
    for old in target.parent.glob(stale):
        if old != target:
            old.unlink(missing_ok=True)


_HERE = Path(__file__).parent
