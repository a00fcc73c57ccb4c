"""The last collectives that a rank asked for, kept where even its sudden end leaves them.

When two ranks meet with data of different size, gloo ends one of the processes on the spot: no handler of Python runs.
So each call is noted in a small file before it begins, 2 to 4 microseconds where a collective takes a hundred. Not in
memory that is mapped to the file: a disk that fails, or a file that is cut, would end the job there. Those that
DistributedDataParallel begins are not seen one by one: the backward pass is, in which it does.
"""

from __future__ import annotations

import json
import os
import sys
from time import time_ns
from typing import TYPE_CHECKING, Any

from torchtriage.examine.run.job.events import Meeting

from ._functions import COLLECTIVES, wrap

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

    Frame = tuple[str, int, str]  # of the user's: its file in JSON, its line, and the loops around it
    Site = tuple[Frame, ...]

ROWS = 16
DONE = 8  # where in a row it stands that the call has returned
KNOWN = 1000  # lines, and backward passes, whose place is kept
DEPTH = 12  # frames that are gone through


def meetings(job: Job) -> None:
    """Each collective that is called from Python, before it begins and after it has returned."""
    import torch

    if not torch.distributed.is_available():
        return
    from torch.nn.parallel import DistributedDataParallel

    noted = _Noted(job, torch.Tensor)
    job.undo(noted.close)
    for name in COLLECTIVES:
        wrap(job, name, noted.making(name))
    job.wrap(DistributedDataParallel, "__init__", noted.wrapped)


class _Noted:
    """A ring of rows, each a Meeting in JSON, put together by hand and filled up with blanks."""

    def __init__(self, job: Job, tensor: type) -> None:
        self.job, self.tensor = job, tensor
        self.calls = 0
        self.frames: dict[Any, Frame | None] = {}  # by code and line
        self.ring: Any = None
        self.process = self.backwards = 0
        self.probe, self.listens = job.placing, False
        self.called: dict[Site, str] = {}  # what is noted of backward passes, by where they are

    def wrapped(self, original: Any) -> Any:
        """From the first DistributedDataParallel on, backward passes are noted too."""

        def __init__(wrapper: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - it is one
            original(wrapper, *args, **kwargs)
            if not self.listens:
                self.listens = True
                self.job.place(self.probe, self.following)

        return __init__

    def following(self, job: Job) -> None:
        job.continuous()
        job.listen(self.backward, self.backwarded)

    def backward(self, _roots: Any) -> None:
        """In a step that rests, what is noted of a place is what was noted before."""
        call = self.called.get(self.site()) if self.job.rest.on and self.process == os.getpid() else None
        self.backwards = self.begin("backward", (), {}) if call is None else self.note(call)

    def backwarded(self, _roots: Any) -> None:
        self.end(self.backwards, None)

    def making(self, name: str) -> Any:
        def make(original: Any) -> Any:
            def collective(*args: Any, **kwargs: Any) -> Any:
                number = self.begin(name, args, kwargs)
                made = original(*args, **kwargs)
                self.end(number, made)
                return made

            return collective

        return make

    def begin(self, name: str, args: Any, kwargs: Any) -> int:
        if self.process != os.getpid():
            self.open()
        given: Any = next((each for each in (*args, *kwargs.values()) if isinstance(each, self.tensor)), None)
        size, dtype = (given.numel(), str(given.dtype)) if given is not None else (0, "")
        site = self.site()
        path, line, loops = _spelt(site)
        call = f'"op":"{name}","size":{size},"dtype":"{dtype}","line":{line},"path":{path},"loops":{loops}}}'
        if name == "backward":
            if len(self.called) > KNOWN:
                self.called.clear()
            self.called[site] = call
        return self.note(call)

    def note(self, call: str) -> int:
        """CALL: the members of the row that are the same whenever it comes from one place."""
        self.calls += 1
        passes = self.job.clock.count("backwards")
        row = f'{{"done":0,"kind":"{Meeting.kind}","n":{self.calls},"at":{time_ns()},"step":{self.job.step},'
        self.ring.put(self.calls, f'{row}"backwards":{passes},{call}')
        return self.calls

    def end(self, number: int, made: Any) -> None:
        """What is still under way is not done, whatever has returned."""
        if self.ring is not None and made is None:
            self.ring.mark(number, DONE, b"1")

    def site(self) -> Site:
        """The user's frames, the innermost first."""
        frame: Any = sys._getframe(2)
        known = self.frames
        if len(known) > KNOWN:
            known.clear()
        found: list[Frame] = []
        for _ in range(DEPTH):
            if frame is None:
                break
            key = (frame.f_code, frame.f_lineno)
            if key not in known:
                known[key] = self.look(frame)
            if (where := known[key]) is not None:
                found.append(where)
            frame = frame.f_back
        return tuple(found)

    def look(self, frame: Any) -> Frame | None:
        """Of a frame of the user's: its file in JSON, its line, and [function, line where a loop begins] of each."""
        path = self.job.path_of(frame.f_code)
        if path is None:
            return None
        loops = self.job.written.loops_around(frame.f_code, frame.f_lineno)
        pairs = ",".join(json.dumps([frame.f_code.co_name, loop]) for loop in loops)
        return json.dumps(path), frame.f_lineno, pairs

    def open(self) -> None:
        """A file of this process: a forked one has its own."""
        self.process, self.calls = os.getpid(), 0
        self.ring = self.job.ring(f"meetings{self.job.writer.ranked()}.{self.process}.jsonl", ROWS)

    def close(self) -> None:
        if self.ring is not None and self.process == os.getpid():
            self.ring.close()
        self.ring = None


def _spelt(site: Site) -> tuple[str, int, str]:
    """File and line of the user's innermost frame, and the loops that it and its callers are in."""
    if not site:
        return '""', 0, "[]"
    return site[0][0], site[0][1], f"[{','.join(each[2] for each in site if each[2])}]"
