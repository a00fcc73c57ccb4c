"""The loops in which a rank updates: a rank that has left one of them has no step left in it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from torchtriage.examine.run.job.events import Rounds

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

DEPTH = 30  # frames that are gone through
MOST = 50  # places that are written down


def rounds(job: Job) -> None:
    """Function and first line of the loops around each place in which an optimizer is called, once each."""
    import torch

    if not torch.distributed.is_available():
        return
    job.spaced()
    known: set[tuple[Any, int]] = set()

    def stepping(_optimizer: Any) -> None:
        if len(known) >= MOST or not torch.distributed.is_initialized():
            return
        loops: list[tuple[str, int]] = []
        frame: Any = sys._getframe(1)
        place = None
        for _ in range(DEPTH):
            if frame is None:
                break
            code = frame.f_code
            if job.path_of(code) is not None:
                place = place or (code, frame.f_lineno)
                if place in known:
                    return
                loops += [(code.co_name, first) for first in job.written.loops_around(code, frame.f_lineno)]
            frame = frame.f_back
        if place is not None:
            known.add(place)
            job.record(Rounds(loops=loops))

    job.listen(stepping)
