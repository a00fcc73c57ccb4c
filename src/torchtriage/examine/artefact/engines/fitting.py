"""Whether files are worth processes of their own, and how many of them this machine has room for."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from torchtriage.examine.artefact.engines import Engine
from torchtriage.examine.artefact.opened import INSIDE, is_url

WORTH = 2**26
"""Bytes, unpacked, of all local files but the largest, from which on processes are started: until one can read it takes
0.2 s, in which a core reads some 30 MB."""
PACKED, NEEDED = 20, 1.4
"""A gzipped trace unpacks to some 20 times its size; reading takes 1.3 times the bytes of a trace in memory."""
_UNKNOWN = 2**28  # bytes of what does not tell its size


def workers(paths: Sequence[str], engine: Engine) -> int:
    """How many processes read PATHS; 0 where this one does."""
    if engine.name == "ray":
        return 1  # the cluster tells
    if engine.name == "one" or (engine.name == "auto" and len(paths) < 2):
        return 0
    sizes = [_size(path) for path in paths]
    cores = engine.workers or len(os.sched_getaffinity(0))
    if engine.name == "auto" and (cores < 2 or sum(sizes) - max(sizes) < WORTH):
        return 0
    each = int(NEEDED * max(sizes)) + 2**26
    return max(min(cores, len(paths), room() // each), 1)


def _size(path: str) -> int:
    """Bytes once unpacked, as far as that can be told without a look into it."""
    if is_url(path) or INSIDE in path:
        return _UNKNOWN
    with suppress(OSError):
        return Path(path).stat().st_size * (PACKED if path.endswith(".gz") else 1)
    return 0


def room() -> int:
    """Bytes of memory that the machine, or the group of processes that this one belongs to, has left."""
    left = _number(Path("/proc/meminfo"), "MemAvailable:") * 1024 or 2**33
    group = Path("/sys/fs/cgroup")
    most, taken = _number(group / "memory.max"), _number(group / "memory.current")
    return min(left, max(most - taken, 0)) if most else left


def _number(path: Path, after: str = "") -> int:
    """The number that PATH holds behind AFTER; 0 where there is none."""
    with suppress(OSError, ValueError, IndexError):
        return int(path.read_text(encoding="ascii").partition(after)[2 if after else 0].split()[0])
    return 0
