"""What a run writes down about the calls that a learning rate schedule was made for, and those that it got."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from .events import Planned

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

_ENDS = {"OneCycleLR": "total_steps", "CosineAnnealingLR": "T_max", "PolynomialLR": "total_iters"}
_KEYWORD = "num_training_steps"  # of the functions that transformers gives to LambdaLR
_MOST = 64  # schedules


def planned(job: Job) -> None:
    """Schedules that know their end: how far they were when the job ended, or nobody held them any more."""
    from torch.optim.lr_scheduler import LRScheduler

    watch = _Plans(job)
    job.wrap(LRScheduler, "__init__", watch.making)
    job.listen(watch.ending)


class _Plans:
    """The attributes of each schedule, by a number; what is left of one that is gone is read as it goes."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.open: dict[int, tuple[weakref.finalize[..., Any], dict[str, Any], str, tuple[str, int]]] = {}
        self.gone: list[Planned] = []
        self.made = 0

    def making(self, original: Any) -> Any:
        def __init__(schedule: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - it is one
            original(schedule, *args, **kwargs)
            number, kept = self.made, vars(schedule)
            self.made += 1
            if number < _MOST:
                last = weakref.finalize(schedule, self.read, number)
                last.atexit = False
                self.open[number] = (last, kept, type(schedule).__name__, self.job.caller())

        return __init__

    def read(self, number: int) -> None:
        _, kept, name, (path, line) = self.open.pop(number)
        if (end := _end(name, kept)) is not None:
            group = getattr(kept.get("optimizer"), "param_groups", [{}])[0]
            rate = group.get("lr") if isinstance(group.get("lr"), float) else None
            calls, turns = int(kept.get("last_epoch") or 0), self.job.clock.turns
            self.gone.append(Planned(schedule=name, end=end, calls=calls, rate=rate, turns=turns, path=path, line=line))

    def ending(self) -> None:
        for number, (last, *_) in list(self.open.items()):
            last.detach()
            self.read(number)
        for plan in self.gone:
            self.job.record(plan)


def _end(name: str, kept: dict[str, Any]) -> int | None:
    """The calls that a schedule with these attributes was made for, where that can be known."""
    if name in _ENDS:
        end = kept.get(_ENDS[name])
        return end if isinstance(end, int) else None
    ends = [getattr(each, "keywords", {}).get(_KEYWORD) for each in kept.get("lr_lambdas") or ()]
    return next((each for each in ends if isinstance(each, int)), None)
