"""Watches for a process group: from then on one who waits for others may wait for ever."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

from ..ranks import membership
from ..ranks.position import world

if TYPE_CHECKING:
    from ..job import Job


def place(job: Job) -> None:
    """Starts to look for hangs with the process group; at once where there is one, or where it was asked for."""
    import torch

    hangs = job.hangs
    hangs.size = world()
    if not hangs.follow_forks():
        return
    job.undo(hangs.end)
    if torch.distributed.is_available():
        _await_group(job, torch)
    if hangs.asked_for or hangs.size > 1:
        hangs.start()


def _await_group(job: Job, torch: Any) -> None:
    from torch.distributed import distributed_c10d

    hangs = job.hangs

    def making(original: Any) -> Any:
        @functools.wraps(original)
        def init_process_group(*args: Any, **kwargs: Any) -> Any:
            if int(kwargs.get("world_size") or -1) > 1 or membership.world_size() > 1:
                hangs.start()  # it may be here that a rank waits for others
            hangs.joining = True
            try:
                made = original(*args, **kwargs)
            finally:
                hangs.joining = False
            hangs.size = max(hangs.size, world())
            if hangs.size > 1:
                hangs.start()
            return made

        return init_process_group

    for owner in (distributed_c10d, torch.distributed, sys.modules.get("torch.distributed.device_mesh")):
        if hasattr(owner, "init_process_group"):
            job.wrap(owner, "init_process_group", making)
