"""What a run writes down about transfers that go on by themselves: by line, how many were ever waited for."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from ._functions import CARRYING, wrap

if TYPE_CHECKING:
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
    """open: by identity of a handle, the line that made it. lines: [op, made, found done] of each. waits: in all."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.open: dict[int, tuple[str, int]] = {}
        self.lines: dict[tuple[str, int], list[Any]] = {}
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
        where = path, frame.f_lineno
        self.open[number] = where
        row = self.lines.setdefault(where, [name, 0, 0])
        row[1] += 1
        if row[1] in TIMES:
            self.tell(where)

    def asking(self, name: str) -> Any:
        def make(original: Any) -> Any:
            def ask(handle: Any, *args: Any, **kwargs: Any) -> Any:
                told = original(handle, *args, **kwargs)
                where = self.open.pop(id(handle), None) if told or name in WAITS else None
                if where is not None:
                    self.lines[where][2] += 1
                    self.waits += name in WAITS
                return told

            return ask

        return make

    def tell(self, where: tuple[str, int]) -> None:
        op, made, done = self.lines[where]
        self.job.record("handles", path=where[0], line=where[1], op=op, made=made, done=done, waits=self.waits)

    def ending(self) -> None:
        for where in self.lines:
            self.tell(where)
