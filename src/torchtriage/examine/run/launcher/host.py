"""Whether the host killed a process for memory: its counters before and after a job, and the kernel's own words."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

from torchtriage.examine.run.lines import Row

_KILL = re.compile(
    r"(?:Memory cgroup out|Out) of memory: Killed process (?P<pid>\d+) \((?P<name>[^)]{1,40})\)"
    r"(?:.{0,200}?anon-rss:(?P<resident>\d+)kB)?"
)
_MOST = 20_000  # records of the kernel's log that are read


def oom_kills(root: Path = Path("/")) -> dict[str, int]:
    """Processes that were killed for memory so far: by the limit of our control group, and on the whole host.

    Of cgroup v2 memory.events, of v1 memory.oom_control, and /proc/vmstat (Linux 4.13 and later); nothing of what this
    system does not tell.
    """
    found = {"host": _count(root / "proc/vmstat")}
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, kinds, path = (*line.split(":", 2), "", "")[:3]
        own = path.lstrip("/")
        if not kinds:  # v2; within a container the group is the root of what is mounted
            files = (root / "sys/fs/cgroup" / own / "memory.events", root / "sys/fs/cgroup/memory.events")
        elif "memory" in kinds.split(","):
            home = root / "sys/fs/cgroup/memory"
            files = (home / own / "memory.oom_control", home / "memory.oom_control")
        else:
            continue
        found["cgroup"] = next((count for file in files if (count := _count(file)) is not None), found.get("cgroup"))
    return {name: count for name, count in found.items() if count is not None}


def killed_for_memory(before: dict[str, int], log: Path = Path("/dev/kmsg")) -> Row | None:
    """What was killed for memory since BEFORE, as the counters tell, with the kernel's last line of it; else None.

    by: "cgroup" where the limit of our own group did it, "host" where only the counter of the host moved: that may have
    been a process of someone else's. pid, name, resident (bytes): as the kernel's log says, where it can be read.
    """
    after = oom_kills()
    moved = [name for name in ("cgroup", "host") if after.get(name, 0) > before.get(name, after.get(name, 0))]
    if not moved:
        return None
    told: Row = {"by": moved[0], "kills": after[moved[0]] - before[moved[0]]}
    if found := _last_kill(log):
        resident = found["resident"]
        told |= {"pid": int(found["pid"]), "name": found["name"]}
        told |= {"resident": int(resident) * 1024} if resident else {}
    return told


def _last_kill(log: Path) -> re.Match[str] | None:
    """The last line of the kernel's log that tells of such a kill; None where it may not be read."""
    found = None
    with suppress(OSError):
        file = os.open(log, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            for _ in range(_MOST):
                record = os.read(file, 8192).decode("utf-8", "replace")
                if not record:
                    break
                found = next(reversed(list(_KILL.finditer(record))), found)
        finally:
            os.close(file)
    return found


def _count(path: Path) -> int | None:
    found = re.search(r"^oom_kill (\d+)$", _read(path), re.MULTILINE)
    return int(found[1]) if found else None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
