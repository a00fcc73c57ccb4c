"""What a run writes down about steps that find no gradient at all: nothing is trained."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from torchtriage.examine.run.job.events import replace

from .events import EmptySteps

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

_TIMES = frozenset({10, 100})  # when something that keeps happening is written down again
_ENOUGH = 200  # backward passes after the first step without a gradient: what they lead to has been seen


def empty_steps(job: Job) -> None:
    """Steps of optimizers none of whose parameters has a gradient, until one has: most jobs are done after a step."""
    watch = _Empty(job)
    job.listen(watch.built, watch.ending)
    watch.follow()


class _Empty:
    """Of each optimizer that has never found a gradient: its steps, and how the backward passes before them began."""

    def __init__(self, job: Job) -> None:
        import torch

        self.job, self.inner, self.parameter = job, f"{job.placing} within", torch.nn.Parameter
        self.events: weakref.WeakKeyDictionary[Any, EmptySteps] = weakref.WeakKeyDictionary()
        self.versions: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self.every: list[EmptySteps] = []  # also of optimizers that are gone by the end
        self.sound: weakref.WeakSet[Any] = weakref.WeakSet()
        self.follows = False
        self.passes = self.leaves = 0  # backward passes since, and those that reach no parameter
        self.where: tuple[str, int] = ("", 0)
        self.root = 0

    def built(self, _optimizer: Any) -> None:
        self.follow()

    def follow(self) -> None:
        if not self.follows:
            self.follows = True
            self.job.place(self.inner, lambda job: job.listen(self.backward, self.stepped))

    def backward(self, roots: Any) -> None:
        """Once a step has found no gradient: whether the pass reaches a parameter, of an optimizer or of none."""
        if not self.every:
            return
        self.passes += 1
        groups = [group for optimizer in self.job.built for group in optimizer.param_groups]
        moved = {id(each) for group in groups for each in group["params"]}
        if any(id(leaf) in moved or isinstance(leaf, self.parameter) for leaf in self.job.leaves(roots)):
            return
        self.leaves += 1
        self.where, frame = self.job.caller(), self.job.frame()
        self.root = self.job.written.root_of(frame) if frame is not None else 0

    def stepped(self, optimizer: Any) -> None:
        if optimizer not in self.sound:
            self.look(optimizer)
        if all(each in self.sound for each in self.job.built) or self.passes >= _ENOUGH:
            self.follows = False
            self.job.withdraw(self.inner)

    def look(self, optimizer: Any) -> None:
        owners = [each for group in optimizer.param_groups for each in group["params"] if each.requires_grad]
        versions = sum(each._version for each in owners)
        is_moved = versions != self.versions.setdefault(optimizer, versions)  # by whatever gradients somebody has
        if not owners or is_moved or any(each.grad is not None for each in owners):
            self.sound.add(optimizer)
            if optimizer in self.events:
                self.events[optimizer].sound = True
        else:
            self.count(optimizer, len(owners))

    def count(self, optimizer: Any, parameters: int) -> None:
        event = self.events.get(optimizer)
        if event is None:
            path, line = self.job.built.at(optimizer)
            event = EmptySteps(
                optimizer=type(optimizer).__name__, parameters=parameters, built=(path, line), path="", line=0, root=0
            )
            self.events[optimizer] = event
            self.every.append(event)
        event.steps += 1
        event.passes, event.leaves, event.root = self.passes, self.leaves, self.root
        event.path, event.line = self.where
        if event.steps in _TIMES:
            self.job.record(event)

    def ending(self) -> None:
        for event in self.every:
            self.job.record(replace(event, last=True))
