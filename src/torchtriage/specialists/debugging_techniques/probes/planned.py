"""What a run writes down about learning rate schedules: the calls that they were made for, and those they got."""

from __future__ import annotations

import weakref
from functools import partial
from typing import TYPE_CHECKING, Any

from .events import Planned

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchtriage.examine.run.job.job import Job

_ENDS = {"OneCycleLR": "total_steps", "CosineAnnealingLR": "T_max", "PolynomialLR": "total_iters"}
_KEYWORD = "num_training_steps"  # of the functions that transformers gives to LambdaLR
_MOST = 64  # schedules


def planned(job: Job) -> None:
    """How far schedules were when the job ended, or nobody held them any more, and the line of their first call."""
    from torch.optim.lr_scheduler import LRScheduler

    watch = _Plans(job)
    job.wrap(LRScheduler, "__init__", watch.making)
    job.listen(watch.ending)


class _Plan:
    """kept: the attributes of a schedule. built, called: the lines that make it, and that step it first."""

    def __init__(self, schedule: Any, built: tuple[str, int], forgotten: Callable[[], None]) -> None:
        self.name, self.kept, self.built = type(schedule).__name__, vars(schedule), built
        self.called: tuple[str, int] = ("", 0)
        self.last = weakref.finalize(schedule, forgotten)
        self.last.atexit = False


class _Plans:
    """The plan of each schedule, by its identity; what is left of one that is gone is read as it goes."""

    def __init__(self, job: Job) -> None:
        self.job, self.calls = job, f"{job.placing} calls"
        self.open: dict[int, _Plan] = {}
        self.uncalled = 0
        self.gone: list[Planned] = []
        self.made = 0

    def making(self, original: Any) -> Any:
        def __init__(schedule: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - it is one
            original(schedule, *args, **kwargs)
            self.made += 1
            if self.made <= _MOST:
                self.open[id(schedule)] = _Plan(schedule, self.job.caller(), partial(self.read, id(schedule)))
                if not self.uncalled:
                    self.job.place(self.calls, lambda job: job.wrap(LRScheduler, "step", self.stepping))
                self.uncalled += 1

        from torch.optim.lr_scheduler import LRScheduler

        return __init__

    def stepping(self, original: Any) -> Any:
        def step(schedule: Any, *args: Any, **kwargs: Any) -> Any:
            plan = self.open.get(id(schedule))
            if plan is not None and not plan.called[1]:
                plan.called = self.job.caller()
                self.settle()
            return original(schedule, *args, **kwargs)

        return step

    def settle(self) -> None:
        """One schedule less whose first call is awaited."""
        self.uncalled -= 1
        if not self.uncalled:
            self.job.withdraw(self.calls)

    def read(self, number: int) -> None:
        plan = self.open.pop(number)
        if not plan.called[1]:
            self.settle()
        group = getattr(plan.kept.get("optimizer"), "param_groups", [{}])[0]
        rate = group.get("lr") if isinstance(group.get("lr"), float) else None
        calls, turns = int(plan.kept.get("last_epoch") or 0), self.job.clock.turns
        path, line = plan.built
        self.gone.append(
            Planned(
                schedule=plan.name, end=_end(plan.name, plan.kept), calls=calls, rate=rate, turns=turns, path=path,
                line=line, further=[(f"{plan.name} is stepped here", *plan.called)],
            )
        )  # fmt: skip

    def ending(self) -> None:
        for number, plan in list(self.open.items()):
            plan.last.detach()
            self.read(number)
        for event in self.gone:
            self.job.record(event)


def _end(name: str, kept: dict[str, Any]) -> int:
    """The calls that a schedule with these attributes was made for; 0 where that cannot be known."""
    if name in _ENDS:
        end = kept.get(_ENDS[name])
        return end if isinstance(end, int) else 0
    ends = [getattr(each, "keywords", {}).get(_KEYWORD) for each in kept.get("lr_lambdas") or ()]
    return next((each for each in ends if isinstance(each, int)), 0)
