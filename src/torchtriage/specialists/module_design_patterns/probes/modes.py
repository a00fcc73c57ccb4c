"""What a run writes down about the mode, training or evaluation, in which models learn and are evaluated."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from torchtriage.examine.run.job.events import replace

from .dependent import Parts
from .events import EvaluatedInTraining, LearnedInEvaluation

if TYPE_CHECKING:
    from types import FrameType

    from torchtriage.examine.run.job.job import Job

_TIMES = frozenset({3, 10, 100, 1000, 10_000, 100_000})  # when something that keeps happening is written down again
_LONG = 10  # steps in a row that are no calibration
_SWITCHES = 10_000  # calls of train() that are looked at
_INNER = "module_design_patterns/modes of train"
_STEPS = "module_design_patterns/modes of steps"
_CALM = 16  # steps in training mode, after which a pass in another mode is waited for
_LOOK = 2  # passes from one line before its model is looked at
_SITES = 64  # lines that call a model without gradients, of which notes are kept


def modes(job: Job) -> None:
    """Steps of models that learn in evaluation mode, and passes without gradients in training mode."""
    import torch

    watch = _Modes(job, torch.is_grad_enabled)
    job.listen(watch.aside, watch.ending)
    watch.follow()
    job.wrap(torch.nn.Module, "eval", watch.switching)
    job.place(_INNER, lambda job: job.wrap(torch.nn.Module, "train", watch.setting))


class _Switch:
    """A call that put a module into evaluation mode."""

    def __init__(self, module: Any, where: tuple[str, int], backwards: int) -> None:
        self.module, self.where = weakref.ref(module), where
        self.backwards = backwards  # of the job until then
        self.evaluated = False  # something ran without gradients after it and before the next of them
        self.running = 0  # steps since, in which it was still in evaluation mode, and a root above it was not


class _Seen:
    """Of one root module: the modes of its passes since the last step, and its steps so far."""

    def __init__(self, module: Any) -> None:
        self.module, self.name = weakref.ref(module), type(module).__name__
        self.taught = self.examined = False  # since the last step, a pass with gradients in training, evaluation mode
        self.learned = self.steps = self.running = self.first = 0
        self.line: tuple[str, int] = ("", 0)
        self.owners: dict[int, bool] = {}
        self.given: Any = None  # weak: what it was given by the last pass with gradients
        self.used = -1  # the batch that the last pass without gradients had before it
        self.last: Any = None  # weak: what that pass was given
        self.sites: dict[tuple[str, int], _Site] = {}


class _Site:
    """One line that calls a model in training mode without gradients."""

    def __init__(self, job: Job, root: str, where: tuple[str, int], frame: FrameType | None) -> None:
        words, around = set[str](), set[str]()
        if frame is not None:
            code, line = frame.f_code, frame.f_lineno
            words = job.written.words(f"{_qualified(code)} {job.written.lines_of(code, line, line)}")
            around = job.written.words(job.written.lines_of(code, max(line - 6, code.co_firstlineno), line + 2))
        self.phase = -1
        self.event = EvaluatedInTraining(
            root=root,
            path=where[0],
            line=where[1],
            passes=0,
            fresh=0,
            again=0,
            phases=0,
            trained_on=0,
            since=job.step,
            words=sorted(words)[:40],
            around=sorted(around)[:80],
            dropped=frame is not None and job.written.dropped(frame),
            set=None,
            kinds={},
            names=[],
            momentum=True,
            learned=0,
            backwards=0,
        )

    def look(self, job: Job, module: Any) -> None:
        """Which parts of the module are in training mode: asked while it lives, it may not at the job's end."""
        parts = Parts(job, module)
        self.event.kinds, self.event.names = Parts.count(parts.training)
        self.event.momentum = parts.momentum


class _Modes:
    def __init__(self, job: Job, with_gradients: Any) -> None:
        self.job, self.with_gradients = job, with_gradients
        self.switched: dict[int, _Switch] = {}
        self.trained: dict[
            int, tuple[Any, int, tuple[str, int]]
        ] = {}  # train(): the module, backwards until then, where
        self.switches, self.inside = 0, False
        self.roots: dict[int, _Seen] = {}
        self.calm = 0  # steps in a row of which nothing is to be told
        self.left: int | None = None  # optimizers' turns until then, where steps are not followed

    @property
    def batches(self) -> int:
        return self.job.clock.count("batches")

    @property
    def backwards(self) -> int:
        return self.job.clock.count("backwards")

    def follow(self) -> None:
        """From now on every step is looked at. Those that were not were of training mode."""
        self.calm = 0
        if self.left is not None:
            for seen in self.roots.values():
                seen.learned += (self.job.clock.turns - self.left) * bool(seen.learned)
        self.left = None
        self.job.place(_STEPS, lambda job: job.listen(self.forward, self.stepped))

    def rest(self) -> None:
        """Until a pass of another kind comes, there is nothing to see."""
        self.left = self.job.clock.turns
        self.job.withdraw(_STEPS)

    def switching(self, original: Any) -> Any:
        def evaluating(module: Any) -> Any:
            self.switch(module, self.job.caller())
            self.inside = True
            try:
                return original(module)
            finally:
                self.inside = False

        return evaluating

    def switch(self, module: Any, where: tuple[str, int]) -> None:
        """A module is put into evaluation mode; where it is already, the first call stays the one that did it."""
        known = self.switched.get(id(module))
        if module.training or known is None or known.module() is not module:
            self.switched[id(module)] = _Switch(module, where, self.backwards)

    def setting(self, original: Any) -> Any:
        """train(False) is eval() by another name; it is called for every part below too, so not for ever."""

        def train(module: Any, mode: bool = True) -> Any:
            self.switches += 1
            if self.switches > _SWITCHES:
                self.job.withdraw(_INNER)
            if self.inside:
                return original(module, mode)
            if mode:
                self.trained[id(module)] = (weakref.ref(module), self.backwards, self.job.caller())
            else:
                self.switch(module, self.job.caller())
            self.inside = True
            try:
                return original(module, mode)
            finally:
                self.inside = False

        return train

    def aside(self, module: Any, args: Any, kwargs: Any) -> None:
        self.calm = 0
        if self.left is not None:
            self.follow()
            self.forward(module, args, kwargs)

    def forward(self, module: Any, args: Any, kwargs: Any) -> None:
        seen = self.roots.get(id(module))
        if seen is None or seen.module() is not module:
            seen = self.roots[id(module)] = _Seen(module)
        if self.with_gradients():
            if module.training:
                seen.taught = True
            elif not seen.examined:
                seen.examined = True
                seen.line = self.job.caller()
            seen.given = _weak(args, kwargs)
            return
        for switch in self.switched.values():
            switch.evaluated = switch.evaluated or switch.backwards == self.backwards > 0
        if module.training:
            self.unrecorded(seen, _weak(args, kwargs))

    def unrecorded(self, seen: _Seen, given: Any) -> None:
        """A pass in training mode that records no gradients, after a step in which it was seen what it learned from."""
        if self.job.clock.follows_rest:
            return
        where = self.job.caller()
        site = seen.sites.get(where)
        if site is None:
            if len(seen.sites) >= _SITES:
                return
            site = seen.sites[where] = _Site(self.job, seen.name, where, self.job.frame())
        new, event = site.phase != self.backwards, site.event
        event.phases += new
        site.phase = self.backwards
        event.passes += 1
        tensor = given() if given else None
        event.again += not new and tensor is not None and seen.last is not None and seen.last() is tensor
        event.trained_on += tensor is not None and seen.given is not None and seen.given() is tensor
        event.fresh += seen.used != self.batches
        seen.used, seen.last = self.batches, given
        if event.passes == _LOOK:
            site.look(self.job, seen.module())
            kept, backwards, where_set = self.trained.get(id(seen.module()), (None, 0, ("", 0)))
            if kept is not None and kept() is seen.module() and backwards == self.backwards:
                event.set = where_set

    def stepped(self, optimizer: Any) -> None:
        self.calm += 1
        for seen in self.roots.values():
            if not (seen.taught or seen.examined):
                continue
            known = seen.owners.get(id(optimizer))
            if known is None:
                known = seen.owners[id(optimizer)] = _trains(optimizer, seen.module())
            if known:
                self.counted(seen)
        if self.calm >= _CALM and not any(seen.sites for seen in self.roots.values()):
            self.rest()

    def counted(self, seen: _Seen) -> None:
        """A step of an optimizer that has parameters of this root."""
        if seen.taught:
            seen.learned += 1
            seen.running = 0
            self.below(seen)
        else:
            seen.first = seen.first if seen.steps else self.job.step
            seen.steps += 1
            seen.running += 1
            module = seen.module() if seen.running in _TIMES else None
            if module is not None:
                self.tell_learning(seen, module, self.switched_at(module))
        seen.taught = seen.examined = False

    def below(self, seen: _Seen) -> None:
        """Parts that were evaluated by themselves, and are in evaluation mode while the model above them learns."""
        for switch in self.switched.values():
            part = switch.module() if switch.evaluated else None
            switch.running = switch.running + 1 if part is not None and not part.training else 0
            self.calm *= not 0 < switch.running < _LONG
            if switch.running == _LONG and any(each is part for each in _parts(seen.module())):
                inner = _Seen(part)  # as if it were a root
                inner.steps = inner.running = _LONG
                inner.learned, inner.first = seen.learned - _LONG, self.job.step - _LONG + 1
                self.tell_learning(inner, part, switch.where)

    def tell_learning(self, seen: _Seen, module: Any, where: tuple[str, int]) -> None:
        parts = Parts(self.job, module)
        kinds, names = Parts.count(parts.evaluating)
        event = LearnedInEvaluation(
            root=self.job.module_name(module) or type(module).__name__,
            path=where[0],
            line=where[1],
            steps=seen.steps,
            running=seen.running,
            learned=seen.learned,
            first=seen.first,
            called=seen.line[0],
            at=seen.line[1],
            kinds=kinds,
            names=names,
            fresh=parts.fresh,
            mixed=sum(map(len, parts.training.values())),
        )
        self.job.record(event)

    def switched_at(self, module: Any) -> tuple[str, int]:
        """The line that last put the module, or one above or right below it, into evaluation mode."""
        above = [switch for switch in self.switched.values() if any(p is module for p in _parts(switch.module()))]
        below = [self.switched.get(id(each)) for each in module.children()]
        found = [switch for switch in (*above, *below) if switch is not None and switch.module() is not None]
        own = [switch for switch in found if switch.module() is module]
        return next((switch.where for switch in (*own, *found) if switch.where[0]), ("", 0))

    def ending(self) -> None:
        for seen in self.roots.values():
            for site in seen.sites.values():
                self.job.record(replace(site.event, learned=seen.learned, backwards=self.backwards))


def _parts(module: Any) -> Any:
    return module.modules() if module is not None else ()


def _qualified(code: Any) -> str:
    return str(getattr(code, "co_qualname", code.co_name))


def _trains(optimizer: Any, module: Any) -> bool:
    """Whether the optimizer has parameters of the module that may learn."""
    own = {id(each) for each in module.parameters() if each.requires_grad} if module is not None else set()
    return any(id(each) in own for group in optimizer.param_groups for each in group["params"])


def _weak(args: Any, kwargs: Any) -> Any:
    """The first tensor given to a pass, weakly."""
    from torch import Tensor

    for value in args or kwargs.values():
        if isinstance(value, Tensor):
            return weakref.ref(value)
    return None
