"""What a run writes down about the time that autocast saves or costs: a forward pass repeated with and without it."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

from .events import AutocastCost

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

_WARM = 4  # steps that are left out
_LEAST, _MOST = 0.01, 1.0  # seconds of a forward pass: less is a toy, more is too dear to repeat
_PAIRS = 4  # measured one step after the other; the first one warms up
_BUSY = 0.1  # of a pair's time, for which the process waited for a CPU: on a busy machine any ratio comes out
_TRIES = 16  # pairs that are repeated until enough of them are undisturbed


def paying(job: Job) -> None:
    """On a CPU, for a forward pass of 10 ms and more under autocast: its time with and without, in pairs.

    Only a forward pass that leaves nothing behind is repeated, between the job's own and its backward.
    """
    job.sampled()
    watch = _Paying(job)
    job.listen(watch.forward, watch.forwarded, watch.backward, watch.ending)


class _Paying:
    """The last forward pass under autocast, and the pairs that were measured."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.probe = job.placing
        self.calls = job.calls()
        self.began, self.waited = 0.0, 0  # of the pass that is under way: seconds, nanoseconds
        self.seconds: list[float] = []  # of the job's own passes, without what they waited for a CPU
        self.place: tuple[str, int] = ("", 0)
        self.format = ""
        self.pairs: list[tuple[float, float]] = []
        self.disturbed = 0  # pairs that other processes took the CPUs from

    def forward(self, module: Any, args: Any, kwargs: Any) -> None:
        import torch

        self.calls.clear()
        on = torch.is_autocast_enabled("cpu") and torch.is_grad_enabled() and not self.job.accelerator.kind
        if self.job.step >= _WARM and on:
            self.calls.keep(module, args, kwargs)
            self.place = self.job.caller()
            self.format = str(torch.get_autocast_dtype("cpu")).removeprefix("torch.")
            self.began, self.waited = perf_counter(), self.job.waited()

    def forwarded(self, _module: Any, _output: Any) -> None:
        if self.calls and self.calls[-1].autocast:
            self.seconds.append(perf_counter() - self.began - (self.job.waited() - self.waited) * 1e-9)

    def backward(self, _roots: Any) -> None:
        import torch

        if not self.calls or not self.seconds or torch.is_autocast_enabled("cpu"):
            return
        least = min(self.seconds)
        if least < _LEAST:
            self.job.withdraw(self.probe)
            return
        why = self.job.why_not_repeated(self.calls[-1]) if least <= _MOST else "a forward pass takes more than a second"
        if why:
            self.tell(why)
            return
        order = (True, False) if len(self.pairs) % 2 else (False, True)
        before = self.job.waited() + self.job.waited_beside()
        try:
            times = {autocast: self.job.seconds_of(self.calls[-1], autocast=autocast) for autocast in order}
        except RuntimeError as error:  # a collective, above all, which one rank must not enter by itself
            self.tell(f"it cannot be repeated: {error}"[:300])
            return
        self.calls.clear()
        waited = self.job.waited() + self.job.waited_beside() - before
        if waited * 1e-9 < _BUSY * sum(times.values()):
            self.pairs.append((times[True], times[False]))
        else:
            self.disturbed += 1
        if len(self.pairs) > _PAIRS:
            self.tell("")
        elif self.disturbed > _TRIES - _PAIRS:
            self.tell("other processes had the CPUs meanwhile")

    def ending(self) -> None:
        if self.seconds and min(self.seconds) >= _LEAST:
            self.tell("the run ended too early")

    def tell(self, why: str) -> None:
        path, line = self.place
        self.job.record(AutocastCost(format=self.format, why=why, pairs=self.pairs[1:], path=path, line=line))
        self.job.withdraw(self.probe)
        self.calls.clear()
