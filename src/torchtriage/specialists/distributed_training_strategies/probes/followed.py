"""What a run writes down about learning rates that follow a metric: what each rank gave."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .events import Followed
from .shards import several

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

MOST = 16


def followed(job: Job) -> None:
    """The first metrics that ReduceLROnPlateau is given, in jobs of several ranks, with the line."""
    import torch
    from torch.optim.lr_scheduler import ReduceLROnPlateau

    if not torch.distributed.is_available():
        return
    number, inside = 0, False

    def stepping(original: Any) -> Any:
        def step(schedule: Any, *args: Any, **kwargs: Any) -> Any:
            nonlocal number, inside
            metric = args[0] if args else kwargs.get("metrics")
            if not inside and number < MOST and metric is not None and several(torch):
                path, line = job.caller()
                job.record(Followed(number=number, metric=repr(float(metric)), path=path, line=line))
                number += 1
            inside = True
            try:
                return original(schedule, *args, **kwargs)
            finally:
                inside = False

        return step

    job.wrap(ReduceLROnPlateau, "step", stepping)
