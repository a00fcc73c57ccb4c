"""A process between the server and a command: when the server lets go, by will or by death, nothing stays alive.

    python -P -m torchtriage.interface.mcp.warden LIMIT WORD…

runs `torchtriage WORD…`. stdin is a pipe that the server holds open. LIMIT: seconds after which the processes that the
command has started are ended, and it may still tell what they showed; 0 for none. Standard library only, to start fast.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Iterator
from pathlib import Path

ADOPT_ORPHANS = 36  # PR_SET_CHILD_SUBREAPER of <linux/prctl.h>
CANCELLED, TIMED_OUT = 2.0, 5.0  # seconds between asking and killing
UNKILLABLE = 10.0  # seconds after which a process in the kernel's hands is given up
PAUSE = 0.02


def main(limit: float, words: list[str]) -> int:
    """The command's exit code as a shell tells it. Where the limit was reached, this process ends by SIGALRM."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(ADOPT_ORPHANS, 1, 0, 0, 0)
    command = [sys.executable, "-P", "-m", "torchtriage", *words]
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL)  # noqa: S603 - torchtriage itself
    threading.Thread(target=_let_go, args=(child,), daemon=True).start()
    try:
        code = child.wait(limit or None)
    except subprocess.TimeoutExpired:
        while child.poll() is None:  # a busy machine may start the job only now
            end(TIMED_OUT, spare=(child.pid,))
            time.sleep(PAUSE)
        end(0.0)
        os.kill(os.getpid(), signal.SIGALRM)
        raise
    end(0.0)
    return code if code >= 0 else 128 - code


def _let_go(child: subprocess.Popen[bytes]) -> None:
    """Waits for the end of stdin, then ends everything."""
    while os.read(0, 1024):
        pass
    end(CANCELLED)
    if child.poll() is None:
        child.kill()
    os._exit(128 + signal.SIGTERM)


def end(grace: float, spare: Collection[int] = ()) -> None:
    """Ends all processes below this one but SPARE: asks, waits for GRACE seconds at most, then kills."""
    if grace and _told(below(spare), signal.SIGTERM):
        _until_gone(spare, grace)
    deadline = time.monotonic() + UNKILLABLE
    while (found := _stopped(spare)) and time.monotonic() < deadline:
        _told(found, signal.SIGKILL)
        _until_gone(spare, PAUSE * 10)


def _until_gone(spare: Collection[int], seconds: float) -> None:
    """Looked at again and again: most are no children of ours, so that nothing can wait for them."""
    deadline = time.monotonic() + seconds
    while below(spare) and time.monotonic() < deadline:
        time.sleep(PAUSE)


def _stopped(spare: Collection[int]) -> set[int]:
    """All of them, standing still: what is stopped starts no other while the rest is looked for."""
    stopped: set[int] = set()
    while new := below(spare) - stopped:
        _told(new, signal.SIGSTOP)
        stopped |= new
    return stopped


def _told(pids: Collection[int], number: signal.Signals) -> int:
    """How many of PIDS could be sent NUMBER."""
    told = 0
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue
        told += 1
    return told


def below(spare: Collection[int] = ()) -> set[int]:
    """The living processes below this one and those of its process group, but SPARE."""
    own = os.getpid()
    rows = [row for row in (_linux() if Path("/proc/self/stat").exists() else _elsewhere()) if row[0] != own]
    found = {pid for pid, _, group in rows if group == own}
    reached = {own, *found}
    while new := {pid for pid, parent, _ in rows if parent in reached} - reached:
        reached |= new
    return reached - {own, *spare}


def _linux() -> Iterator[tuple[int, int, int]]:
    """Number, parent and group of each process that lives."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                # The name in brackets may hold anything, brackets and blanks too.
                state, parent, group = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[:3]
            except OSError:
                continue
            if state not in "ZX":
                yield int(folder.name), int(parent), int(group)


def _elsewhere() -> Iterator[tuple[int, int, int]]:
    if os.name == "nt":
        return
    command = ["/bin/ps", "-A", "-o", "pid=,ppid=,pgid=,stat="]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as listing:  # noqa: S603 - no word of anybody's
        lines = listing.communicate()[0].splitlines()
    for line in lines:
        pid, parent, group, state = line.split(maxsplit=3)
        if not state.startswith("Z") and int(pid) != listing.pid:
            yield int(pid), int(parent), int(group)


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), sys.argv[2:]))
