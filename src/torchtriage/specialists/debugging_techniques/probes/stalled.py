"""What a run writes down about steps that change nothing."""

from __future__ import annotations

import weakref
from functools import partial
from typing import TYPE_CHECKING, Any

from .events import Stalled

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

_ODD = 3  # steps in a row that changed nothing, from which the next ones are watched
_TIMES = frozenset({24, 100, 1000, 10_000, 100_000})  # in a row, when that is written down
_VALUES = 64  # of a parameter, that are held against those of before


def stalled(job: Job) -> None:
    """Steps in a row that leave an optimizer's parameters as they were, though their gradients are not zero.

    The version of a parameter tells at once that it was changed; where it stays, the values are looked at, for a step
    may write past the version.
    """
    job.sampled()
    job.computes()
    watch = _Stalled(job)
    job.listen(watch.stepping, watch.stepped)


class _Still:
    """One optimizer: since when its parameters have not changed."""

    def __init__(self) -> None:
        self.owners: list[Any] = []
        self.versions: list[int] = []
        self.kept: list[Any] = []  # values at the first step that changed no version
        self.running = self.since = 0
        self.told = self.exempt = False

    def looks(self) -> Any:
        """Two numbers that are not yet waited for: whether a value is not what it was when versions stopped to change,
        and whether this step had gradients to apply.
        """
        import torch

        pairs = zip(self.owners, self.kept, strict=True)
        moved = torch.stack([(owner.detach().flatten()[:_VALUES] != was).any() for owner, was in pairs]).any()
        return torch.stack([moved, torch.stack([owner.grad.any() for owner in self.owners]).all()]).float()

    def restart(self) -> None:
        self.kept, self.running = [], 0


class _Stalled:
    def __init__(self, job: Job) -> None:
        self.job = job
        self.known: weakref.WeakKeyDictionary[Any, _Still] = weakref.WeakKeyDictionary()

    def stepping(self, optimizer: Any) -> None:
        still = self.known.get(optimizer)
        if still is None:
            still = self.known[optimizer] = _Still()
            still.exempt = any(group.get("fused") for group in optimizer.param_groups)
        if still.exempt:
            return
        if not still.running:
            every = self.job.with_gradient(optimizer)
            still.owners = [every[0], every[-1]] if every else []
        still.versions = [owner._version for owner in still.owners]

    def stepped(self, optimizer: Any) -> None:
        still = self.known.get(optimizer)
        if still is None or still.exempt or not still.versions:
            return
        if still.versions != [owner._version for owner in still.owners]:
            self.resumed(optimizer, still)
        elif not still.kept:
            still.kept = [owner.detach().flatten()[:_VALUES].clone() for owner in still.owners]
            still.since = self.job.step
        elif all(owner.grad is not None for owner in still.owners):
            self.job.late.read_all(still.looks(), partial(self.judge, optimizer, still, self.is_meant(optimizer)))

    def is_meant(self, optimizer: Any) -> bool:
        """Whether this step would move the parameters."""
        rates = (group.get("lr") for group in optimizer.param_groups)
        return self.job.scaling.scaler is None and all(isinstance(rate, float) and rate > 0 for rate in rates)

    def judge(self, optimizer: Any, still: _Still, is_meant: bool, looks: list[float]) -> None:
        moved, taught = looks
        if still.exempt or not still.kept:
            return  # on a device, judged by then
        if moved:
            still.exempt = True  # it writes past the versions
            self.resumed(optimizer, still)
        elif taught and is_meant:
            self.count(optimizer, still)

    def count(self, optimizer: Any, still: _Still) -> None:
        still.running += 1
        if still.running == _ODD:
            self.job.suspect()
        if still.running in _TIMES:
            still.told = True
            self.tell(optimizer, still)

    def resumed(self, optimizer: Any, still: _Still) -> None:
        still.restart()
        if still.told:
            still.told = False
            self.tell(optimizer, still)

    def tell(self, optimizer: Any, still: _Still) -> None:
        path, line = self.job.caller()
        name = type(optimizer).__name__
        self.job.record(
            Stalled(
                optimizer=name,
                number=id(optimizer),
                rate=optimizer.param_groups[0]["lr"],
                running=still.running,
                since=still.since,
                path=path,
                line=line,
                further=[(f"{name} is built here", *self.job.built.at(optimizer))],
            )
        )
