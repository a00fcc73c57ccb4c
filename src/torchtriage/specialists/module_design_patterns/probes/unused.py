"""What a run writes down about parameters that an optimizer has and that never get a gradient."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from torchtriage.examine.run.job.events import replace

from .events import Unused
from .siblings import Siblings, siblings

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

_FOLLOWED = 64  # parameters of one optimizer
_NAMED, _SEEN = 10, 14  # steps between which the modules of parameters without a gradient are watched
_CLASSES = 4
_INNER = "module_design_patterns/unused within"


def unused(job: Job) -> None:
    """Parameters of an optimizer without a gradient in any of its steps, and whether their modules run at all."""
    import torch

    watch = _Unused(job)
    job.listen(watch.built, watch.ending)
    watch.fresh.update(job.alive(torch.optim.Optimizer))
    watch.follow()


class _Idle:
    """A parameter without a gradient so far."""

    def __init__(self, parameter: Any) -> None:
        self.parameter = weakref.ref(parameter)
        self.owner: Any = None
        self.siblings: list[Siblings] = []
        self.event: Unused | None = None

    def learned(self) -> bool:
        """Whether it has a gradient, or is not meant to have one; one that is gone stays as it was last seen."""
        parameter = self.parameter()
        return parameter is not None and (parameter.grad is not None or not parameter.requires_grad)

    def is_choice(self, *, closely: bool) -> bool:
        """Whether the step that has ended tells that it is one of several that are used by turns."""
        told = [each.chosen(closely=closely) for each in self.siblings]  # each begins a new step
        return any(told)

    def kinds(self) -> list[type]:
        """The classes of modules whose calls tell something of it."""
        owner = self.owner()
        kinds = [each.kind for each in self.siblings if hasattr(each.kind, "forward")]
        return kinds if owner is None else [type(owner), *kinds]

    def name(self, job: Job, optimizer: str) -> bool:
        """Names it; False in a compiled model, which must not be touched."""
        import torch

        parameter = self.parameter()
        above = _above(job, parameter)
        if parameter is None or not above or _compiled(above[0][1]):
            return False
        path, owner = above[-1]
        self.siblings = siblings([part for _, part in above], parameter)
        own = next(name for name, each in owner.named_parameters(recurse=False) if each is parameter)
        file, line = _written(job, above, own)
        name = f"{path}.{own}" if len(above) > 1 else own
        self.owner = weakref.ref(owner)
        held = isinstance(owner, (torch.nn.ParameterList, torch.nn.ParameterDict))
        self.event = Unused(
            optimizer=optimizer,
            steps=_NAMED,
            size=parameter.numel(),
            ran=False,
            frozen=False,
            name=name,
            module=path if len(above) > 1 and not held else name,
            path=file,
            line=line,
            partly=any(each.grad is not None for each in owner.parameters()),
        )
        return True


class _Turns:
    """Of one optimizer: its steps, and those of its parameters that are still without a gradient."""

    def __init__(self, optimizer: Any) -> None:
        import torch

        self.name, self.steps = type(optimizer).__name__, 0
        every = [p for group in optimizer.param_groups for p in group["params"]]
        lazy = torch.nn.parameter.is_lazy
        none = [p for p in every if p.requires_grad and p.grad is None and not lazy(p)]
        self.idle = [_Idle(each) for each in none[:_FOLLOWED]]


class _Unused:
    def __init__(self, job: Job) -> None:
        self.job, self.steps = job, f"{job.placing} in steps"
        self.following = False
        self.fresh: weakref.WeakSet[Any] = weakref.WeakSet()  # optimizers that have not stepped yet
        self.known: weakref.WeakKeyDictionary[Any, _Turns] = weakref.WeakKeyDictionary()
        self.turns: list[_Turns] = []

    def built(self, optimizer: Any) -> None:
        self.fresh.add(optimizer)
        self.follow()

    def follow(self) -> None:
        """Listens while an optimizer may have a parameter without a gradient."""
        if not self.following:
            self.following = True
            self.job.place(self.steps, lambda job: job.listen(self.stepped, self.skipped))

    def skipped(self, optimizer: Any, _scaler: Any) -> None:
        self.stepped(optimizer)

    def stepped(self, optimizer: Any) -> None:
        turns = self.known.get(optimizer)
        if turns is None:
            turns = self.known[optimizer] = _Turns(optimizer)
            self.turns.append(turns)
            self.fresh.discard(optimizer)
        turns.steps += 1
        if not turns.idle:
            if not self.fresh and not any(each.idle for each in self.turns):
                self.following = False
                self.job.withdraw(self.steps)
            return
        closely = _NAMED < turns.steps <= _SEEN
        turns.idle = [each for each in turns.idle if not each.learned() and not each.is_choice(closely=closely)]
        if turns.steps == _NAMED:
            turns.idle = [each for each in turns.idle if each.name(self.job, turns.name)]
            self.watch(turns)
        elif turns.steps == _SEEN:
            self.job.withdraw(_INNER)

    def watch(self, turns: _Turns) -> None:
        """Looks, for a few steps, whether the modules of these parameters run, and those beside them."""
        kinds = list({kind: None for each in turns.idle for kind in each.kinds()})[:_CLASSES]
        for kind in kinds:
            self.job.place(_INNER, lambda job, kind=kind: job.wrap(kind, "forward", self.running))
        turns.idle = [each for each in turns.idle if set(each.kinds()) <= set(kinds)]

    def running(self, original: Any) -> Any:
        import torch

        def forward(module: Any, *args: Any, **kwargs: Any) -> Any:
            for each in [each for turns in self.turns for each in turns.idle]:
                if each.event is not None and each.owner() is module:
                    each.event.ran = True
                    each.event.frozen = each.event.frozen or not torch.is_grad_enabled()
                for others in each.siblings:
                    others.called(module, (*args, *kwargs.values()))
            return original(module, *args, **kwargs)

        return forward

    def ending(self) -> None:
        for turns in self.turns:
            for each in turns.idle:
                if each.event is not None and turns.steps >= _SEEN:
                    self.job.record(replace(each.event, steps=turns.steps))


def _above(job: Job, parameter: Any) -> list[tuple[str, Any]]:
    """The modules from a root down to the one that has the parameter as its own, with their paths."""
    for root in job.roots:
        inner = dict(root.named_modules())
        for path, module in inner.items():
            if any(each is parameter for each in module._parameters.values()):
                parts = path.split(".") if path else []
                paths = [".".join(parts[:number]) for number in range(len(parts) + 1)]
                return [(each, inner[each]) for each in paths if each in inner]
    return []


def _written(job: Job, above: list[tuple[str, Any]], own: str) -> tuple[str, int]:
    """Where the user sets the parameter OWN of the lowest module, or else the part of him that it belongs to."""
    names = [*(path.rpartition(".")[2] for path, _ in above[1:]), own]
    lines = (job.written.assigned(type(part), name) for (_, part), name in zip(above[::-1], names[::-1], strict=True))
    return next((line for line in lines if line[1]), ("", 0))


def _compiled(root: Any) -> bool:
    parts = root.modules()
    return any(hasattr(each, "_orig_mod") or getattr(each, "_compiled_call_impl", None) for each in parts)
