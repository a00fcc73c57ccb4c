"""Where a process stands that does not move: its stack, its collectives, and whether it works or waits."""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import TYPE_CHECKING

from ..accelerator import accelerator
from ..code import frames, source
from ..record.writer import opened
from . import flight

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType, FrameType

    from ..events import Call, Collective
    from ..watch.session import Session

STACK = 16  # frames of the user's code that are told
FRAMES = 8  # frames of any code that are told, the innermost
DEPTH = 300  # frames that are looked at
KEPT = 6  # collectives of each group that are told, the last; those that have not ended all, up to PENDING
PENDING = 32
READ = 2000  # entries of the recorder that are gone through
BUSY = 0.2  # share of a CPU above which a thread works
MOVED = 1 << 20  # bytes read and written by the process between two looks that are work too
MEETING = "distributed_c10d.py"


class Mark:
    """How much a process has done at one moment: CPU time of its watched thread, bytes read and source."""

    def __init__(self, job: Session) -> None:
        self.moment, self.io = time.monotonic(), _transferred()
        self.thread = _watched(job)
        self.cpu = _cpu(self.thread)

    def worked_since(self, earlier: Mark) -> bool:
        """Whether the thread ran, or the process read or wrote, between EARLIER and now."""
        elapsed = max(self.moment - earlier.moment, 1e-3)
        ran = (self.cpu or 0.0) - (earlier.cpu or 0.0) if self.thread == earlier.thread else 0.0
        return ran > BUSY * elapsed or self.io - earlier.io > MOVED


class Look(Mark):
    """What is seen of a process at one moment, as a Hang tells it; of an ERROR, the frames that it came through.

    pending: whether a collective is. key: equal while a thread stands.
    """

    def __init__(self, job: Session, *, error: BaseException | None = None) -> None:
        super().__init__(job)
        frame = sys._current_frames().get(self.thread)
        self.stack: list[tuple[str, int, str, list[int]]] = []
        self.frames: list[tuple[str, int, str]] = []
        self.call: Call | None = None
        for at in _outwards(frame) if error is None else _through(error):
            self._take(*at)
        self.training = job.learning or any(name == "backward" for *_, name in self.frames)
        del frame
        self.collectives: list[Collective] = []
        self.last: dict[str, int] = {}
        self.groups: dict[str, list[int]] = {}
        if _available():
            self._gather(flight.entries(READ))
        self.pending = any(each["pending"] for each in self.collectives)
        self.key = tuple((path, function) for path, _, function, _ in self.stack)

    def waits(self, earlier: Mark) -> bool:
        """Whether it waits for other ranks: within a call of torch.distributed, or for a collective under way."""
        return self.call is not None or (self.pending and (not self.worked_since(earlier) or bool(accelerator.kind)))

    def _take(self, code: CodeType, line: int, frame: FrameType) -> None:
        path = frames.path_of(code)
        if not self.stack and code.co_filename.endswith(MEETING):
            self.call = _called(frame, self.call)
        if path is not None and len(self.stack) < STACK:
            self.stack.append((path, line, code.co_name, source.loops_around(code, line)))
        if not code.co_filename.startswith(str(frames.OURS)) and len(self.frames) < FRAMES:
            self.frames.append((path or _short(code.co_filename), line, code.co_name))

    def _gather(self, found: list[flight.Entry]) -> None:
        by_group: dict[str, list[flight.Entry]] = {}
        for each in found:
            key = f"{each['group']}{' p2p' if each['p2p'] else ''}"
            by_group.setdefault(key, []).append(each)
            self.last[key] = max(self.last.get(key, 0), each["seq"])
            self.groups[each["group"]] = each["ranks"]
        kept = {id(each): each for several in by_group.values() for each in several[-KEPT:]}
        kept |= {id(each): each for each in [each for each in found if each["pending"]][:PENDING]}
        self.collectives = [_brief(each) for each in kept.values()]


def _outwards(frame: FrameType | None) -> Iterator[tuple[CodeType, int, FrameType]]:
    """FRAME and those that called it."""
    depth = 0
    while frame is not None and depth < DEPTH:
        if frame.f_lineno:
            yield frame.f_code, frame.f_lineno, frame
        frame, depth = frame.f_back, depth + 1


def _through(error: BaseException) -> Iterator[tuple[CodeType, int, FrameType]]:
    """The frames that ERROR came through, the innermost first."""
    found = []
    trace = error.__traceback__
    while trace is not None:
        found.append((trace.tb_frame.f_code, trace.tb_lineno, trace.tb_frame))
        trace = trace.tb_next
    return reversed(found)


def grouped() -> bool:
    """Whether this process is in a process group."""
    import torch

    return _available() and bool(torch.distributed.is_initialized())


def _available() -> bool:
    import torch

    return bool(torch.distributed.is_available())


def world() -> int:
    """How many are in it; 1 without any."""
    import torch

    return int(torch.distributed.get_world_size()) if grouped() else 1


def _watched(job: Session) -> int:
    """The watched thread, or the main one when that has ended."""
    thread = job.watched.thread
    return thread if thread in sys._current_frames() else threading.main_thread().ident or 0


def _cpu(thread: int) -> float | None:
    """Seconds for which a thread has had a CPU, or has waited for one; None where the system does not tell."""
    known = getattr(threading, "_active", {}).get(thread)  # enumerate() would take a lock
    number = os.getpid() if thread == threading.main_thread().ident else getattr(known, "native_id", None)
    told = _read(f"/proc/self/task/{number}/schedstat").split()
    return (int(told[0]) + int(told[1])) / 1e9 if len(told) > 1 else None


def _transferred() -> int:
    """Bytes that the process has read and written so far; 0 where the system does not tell."""
    told = dict(line.split(b": ") for line in _read("/proc/self/io").splitlines() if b": " in line)
    return int(told.get(b"rchar", 0)) + int(told.get(b"wchar", 0))


def _read(path: str) -> bytes:
    """What a small file of the system holds; nothing where there is none."""
    try:
        file = opened(path, os.O_RDONLY)
    except OSError:
        return b""
    try:
        return os.read(file, 512)
    except OSError:
        return b""
    finally:
        os.close(file)


def _called(frame: FrameType, inner: Call | None) -> Call:
    """The call of torch.distributed that the user made, with the ranks that any call within it names."""
    name, call = frame.f_code.co_name, inner or {}
    if name.startswith("_"):
        return inner or {"op": name.lstrip("_")}
    given = frame.f_locals
    for each in ("src", "dst", "group_src", "group_dst"):
        if type(given.get(each)) is int:
            call[each] = given[each]
    return {**call, "op": name}


def _brief(entry: flight.Entry) -> Collective:
    """ENTRY without what a reader of a hang has no use for; of long lists of tensors the first eight."""
    return {
        "group": entry["group"],
        "seq": entry["seq"],
        "p2p": entry["p2p"],
        "op": entry["op"],
        "created": entry["created"],
        "pending": entry["pending"],
        "sizes": entry["sizes"][:8],
        "dtypes": entry["dtypes"][:8],
    }


def _short(path: str) -> str:
    return "/".join(path.rsplit("/", 3)[-3:])
