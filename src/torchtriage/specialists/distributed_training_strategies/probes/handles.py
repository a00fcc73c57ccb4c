"""What a run writes down about transfers that go on by themselves: by line, how many were ever waited for."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from ._functions import CARRYING, wrap
from .events import Handles

if TYPE_CHECKING:
    from torchtriage.examine.run.job.events import Where
    from torchtriage.examine.run.job.job import Job

WAITS = ("wait", "get_future", "synchronize", "result")
ASKS = ("is_completed", "is_success")
BETWEEN = "_torchtriage", "torchtriage", "torch.distributed"  # whose frames lie between a call and what it begins
OPEN = 20_000  # handles that nobody has waited for yet; with more, none is followed any longer
TIMES = frozenset({8, 64, 1024, 32_768})


def handles(job: Job) -> None:
    """Each asynchronous collective that the user's own lines ask for.

    Not isend and irecv: what is put in their place is no longer what torch's P2POp compares its operation with.
    """
    import torch

    if not torch.distributed.is_available():
        return
    from torch.distributed import distributed_c10d

    watch = _Handles(job)
    for name in CARRYING:
        wrap(job, name, watch.starting(name))
    for name in (*WAITS, *ASKS):
        if hasattr(distributed_c10d.Work, name):
            job.wrap(distributed_c10d.Work, name, watch.asking(name))
    job.listen(watch.ending)


class _Handles:
    """open: by identity of a handle, the line that made it. lines: what is told of each. waits: in all."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.open: dict[int, Where] = {}
        self.lines: dict[Where, Handles] = {}
        self.waits = 0

    def starting(self, name: str) -> Any:
        def make(original: Any) -> Any:
            def collective(*args: Any, **kwargs: Any) -> Any:
                made = original(*args, **kwargs)
                if made is not None and kwargs.get("async_op") and hasattr(made, "wait"):
                    self.started(name, id(made))
                return made

            return collective

        return make

    def started(self, name: str, number: int) -> None:
        frame: Any = sys._getframe(2)
        while frame is not None and str(frame.f_globals.get("__name__")).startswith(BETWEEN):
            frame = frame.f_back
        path = self.job.path_of(frame.f_code) if frame is not None else None
        if frame is None or path is None or len(self.open) >= OPEN:
            return  # a library's, which knows what it does
        where = self.open[number] = path, frame.f_lineno
        if where not in self.lines:
            self.lines[where] = Handles(path=path, line=frame.f_lineno, op=name, made=0, done=0, waits=0)
        handles = self.lines[where]
        handles.made += 1
        if handles.made in TIMES:
            self.tell(handles)

    def asking(self, name: str) -> Any:
        def make(original: Any) -> Any:
            def ask(handle: Any, *args: Any, **kwargs: Any) -> Any:
                told = original(handle, *args, **kwargs)
                where = self.open.pop(id(handle), None) if told or name in WAITS else None
                if where is not None:
                    self.lines[where].done += 1
                    self.waits += name in WAITS
                return told

            return ask

        return make

    def tell(self, handles: Handles) -> None:
        handles.waits = self.waits
        self.job.record(handles)

    def ending(self) -> None:
        for handles in self.lines.values():
            self.tell(handles)
