"""What a run writes down about gradients that are cleared too early or clipped too late."""

from __future__ import annotations

import weakref
from itertools import islice
from typing import TYPE_CHECKING, Any

from torchtriage.examine.run.job.events import replace

from ._shrunk import Shrunk
from .events import LateClip, Zeroed

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchtriage.examine.run.job.job import Job

_TIMES = frozenset({3, 10, 100, 1000, 10_000, 100_000})  # when something that keeps happening is written down again
_VALUES = 64  # of a parameter that tell whether a step moved it
_TRIES = 3  # steps in which the line is looked for that clears gradients without zero_grad
_LOOKS = 4  # gradients of an optimizer that are looked at for one that is not zero


def zeroed(job: Job) -> None:
    """Optimizers that step with gradients that were cleared after the backward pass which filled them."""
    import torch

    watch = _Zeroed(job)
    job.orderly()
    job.computes()
    job.listen(watch.watching, watch.backwarded, watch.stepping, watch.stepped, watch.skipped, watch.ending)
    job.wrap(torch.optim.Optimizer, "zero_grad", watch.clearing)
    job.wrap(torch.nn.Module, "zero_grad", watch.clearing)


class _Turn:
    """Of one optimizer: a gradient that backward left it since its last step, and how its steps found that.

    early: steps whose gradients had been cleared. sound: whether one found them, which settles the matter.
    """

    def __init__(self, number: int, name: str) -> None:
        self.number, self.name = number, name
        self.early = 0
        self.sound = False
        self.filled: weakref.ref[Any] | None = None
        self.version = 0
        self.was_full: Any = None  # on a device, which is not waited for: whether that gradient was not zero
        self.values: Any = None  # of that parameter, before the step whose closure ran the backward pass
        self.cleared: tuple[str, int] = ("", 0)
        self.above: list[tuple[str, int]] = []  # who called what cleared them
        self.place: tuple[str, int] = ("", 0)  # of the first step that came too late
        self.running = self.named = False  # named: zero_grad cleared them
        self.tries = _TRIES
        self.hands: list[tuple[str, int]] = []  # the line that cleared them by itself, and who called it
        self.follower: Any = None

    def follow(self, job: Job) -> None:
        """From here to the step it is looked for the line that clears the gradient."""
        parameter = self.filled() if self.filled else None
        if parameter is not None:
            gradient, version = parameter.grad, parameter.grad._version
            self.tries -= 1
            self.follower = job.follow(lambda: parameter.grad is not gradient or gradient._version != version)

    def followed(self) -> None:
        if self.follower is not None:
            self.hands, self.follower = self.follower.stop() or self.hands, None

    def fill(self, optimizer: Any) -> None:
        """Keeps one of the first parameters whose gradient is not zero, or on a device may not be."""
        self.filled, self.values, self.cleared = None, None, ("", 0)
        owners = (p for group in optimizer.param_groups for p in group["params"] if _plain(p.grad))
        for parameter in islice(owners, _LOOKS):
            if not parameter.grad.is_cpu or bool(parameter.grad.any()):
                self.filled = weakref.ref(parameter)
                self.was_full = None if parameter.grad.is_cpu else parameter.grad.any()
                self.values = parameter.detach().flatten()[:_VALUES].clone() if self.running else None
                return

    def verdict(self, is_early: Any) -> Any:
        """IS_EARLY as a number, and -1 where the gradient was zero from the beginning, which tells nothing."""
        return is_early.float() if self.was_full is None else self.was_full.float() * (is_early.float() + 1) - 1

    def unmoved(self, parameter: Any) -> Any:
        """Whether a step left PARAMETER as it was, with no gradient, as a tensor not yet waited for."""
        same = (parameter.detach().flatten()[:_VALUES] == self.values).all()
        return same if parameter.grad is None else same & ~parameter.grad.any()


class _Zeroed:
    """Follows each optimizer from the backward pass that fills its gradients to its step."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.turns: weakref.WeakKeyDictionary[Any, _Turn] = weakref.WeakKeyDictionary()
        self.every: list[_Turn] = []  # those too whose optimizer is gone

    def watching(self) -> None:
        for turn in self.turns.values():
            turn.filled, turn.running = None, False
            turn.followed()

    def backwarded(self, _roots: Any) -> None:
        for optimizer, turn in self.turns.items():
            if not turn.sound:
                turn.fill(optimizer)
                if turn.early and turn.tries and not (turn.running or turn.named):
                    turn.follow(self.job)

    def clearing(self, original: Any) -> Any:
        def zero_grad(owner: Any, *args: Any, **kwargs: Any) -> Any:
            """A module may hold the parameters of any optimizer."""
            turns = list(self.turns.values()) if owner not in self.turns else [self.turns[owner]]
            for turn in turns:
                if turn.filled and (not turn.running or turn.values is not None) and not turn.cleared[1]:
                    turn.cleared, *turn.above = self.job.callers(2)
                    turn.named = True
            return original(owner, *args, **kwargs)

        return zero_grad

    def stepping(self, optimizer: Any) -> None:
        turn = self.turns.get(optimizer)
        if turn is None:
            self.turns[optimizer] = turn = _Turn(len(self.every), type(optimizer).__name__)
            self.every.append(turn)
        turn.running = True
        turn.followed()
        owner = turn.filled() if turn.filled else None
        turn.version = owner._version if owner is not None else 0

    def stepped(self, optimizer: Any) -> None:
        turn = self.turns.get(optimizer)
        if turn is None or not turn.running:
            return
        owner = turn.filled() if turn.filled else None
        turn.running, turn.filled = False, None
        if owner is None:
            return
        if turn.values is not None:
            self.job.late.read(turn.verdict(turn.unmoved(owner)), lambda value: self.hear(turn, value))
        elif owner.grad is None:
            moved = owner._version != turn.version  # by an optimizer with gradients of its own
            self.count(turn, early=not moved)
        else:
            self.job.late.read(turn.verdict(~owner.grad.any()), lambda value: self.hear(turn, value))

    def skipped(self, optimizer: Any, _scaler: Any) -> None:
        if optimizer in self.turns:
            self.turns[optimizer].filled = None

    def hear(self, turn: _Turn, verdict: float) -> None:
        if verdict >= 0:
            self.count(turn, early=bool(verdict))

    def count(self, turn: _Turn, *, early: bool) -> None:
        turn.early, turn.sound = turn.early + early, turn.sound or not early
        if early and turn.early == 1:
            turn.place = self.job.caller()
        if early and turn.early in _TIMES:
            self.write(turn)

    def ending(self) -> None:
        for turn in self.every:
            if turn.early:
                self.write(turn)

    def write(self, turn: _Turn) -> None:
        places = [turn.cleared, *turn.above] if turn.cleared[1] else turn.hands or [turn.place]
        path, line = places[0]
        further = [(f"{turn.name} steps here, without gradients", *turn.place)]
        further += [("what clears them is called from here", *each) for each in places[1:3]]
        self.job.record(
            Zeroed(
                optimizer=turn.name,
                number=turn.number,
                by_name=bool(turn.cleared[1]),
                early=turn.early,
                sound=turn.sound,
                path=path,
                line=line,
                further=further,
            )
        )


def late_clips(job: Job) -> None:
    """Clips of gradients that a step has used and no backward has touched since."""
    watch = _LateClips(job)
    job.orderly()
    job.listen(
        watch.watching, watch.backward, watch.stepping, watch.stepped, watch.skipped, watch.clipping, watch.ending
    )


def late_cuts(job: Job) -> None:
    """Gradients that the script's own lines make smaller after the step that used them, and then clears."""
    import torch

    watch = Shrunk(job)
    job.orderly()
    job.computes()
    job.listen(watch.watching, watch.backward, watch.stepping, watch.stepped, watch.skipped)
    job.listen(watch.clipping, watch.ending)
    job.wrap(torch.optim.Optimizer, "zero_grad", watch.clearing)
    job.wrap(torch.nn.Module, "zero_grad", watch.clearing)


class _LateClips:
    """late: clips after the step that used the gradients; cut: those that cut something off.

    A clip within the step of an optimizer of the user's own is late when the weights had moved before it, and did not
    move after it.
    """

    def __init__(self, job: Job) -> None:
        self.job, self.probe = job, job.placing
        self.used: list[weakref.ref[Any]] = []
        self.seen = False  # a backward pass since the window of watched steps began
        self.running: tuple[weakref.ref[Any], Any, int] | None = None  # a step: its optimizer, a parameter, its version
        self.within: tuple[int, Callable[[], None]] | None = None  # a clip in it: the version then, and what tells it
        self.late = self.cut = 0
        self.first: LateClip | None = None
        self.step: tuple[str, int] = ("", 0)  # the line of the last one before the first of those clips

    def watching(self) -> None:
        self.used, self.seen, self.running = [], False, None

    def backward(self, _roots: Any) -> None:
        self.used, self.seen, self.running = [], True, None

    def stepping(self, optimizer: Any) -> None:
        """That of a class may run that of its base."""
        owner = next((p for group in optimizer.param_groups for p in group["params"] if p.grad is not None), None)
        if owner is not None and (self.running is None or self.running[0]() is not optimizer):
            self.running, self.within = (weakref.ref(optimizer), weakref.ref(owner), owner._version), None

    def stepped(self, optimizer: Any) -> None:
        self.used.append(weakref.ref(optimizer))
        if self.first is None:
            self.step = self.job.caller()
        owner = self.running[1]() if self.running else None
        if self.within and owner is not None:
            version, tell = self.within
            if owner._version == version:
                tell()
            else:
                self.job.withdraw(self.probe)
        self.running, self.within = None, None

    def skipped(self, optimizer: Any, _scaler: Any) -> None:
        self.stepped(optimizer)

    def clipping(self, call: str, parameters: list[Any], limit: Any, norm: Any) -> None:
        first = next((p for p in parameters if p.grad is not None), None)
        if first is None or not self.seen or float(limit) == float("inf"):
            return
        used = any(_holds(optimizer, first) for kept in self.used if (optimizer := kept()) is not None)
        where = (call, float(limit), *self.job.caller())
        if used:
            self.came_late(where, norm)
        elif (version := self.moved_for(first)) is not None:
            self.within = version, lambda: self.came_late(where, norm)
        else:
            self.job.withdraw(self.probe)  # one in time: whatever comes late is meant to

    def moved_for(self, parameter: Any) -> int | None:
        """The version of the weights, when the step of the optimizer that holds PARAMETER runs and has moved them."""
        optimizer, owner = (self.running[0](), self.running[1]()) if self.running else (None, None)
        if optimizer is None or owner is None or not _holds(optimizer, parameter):
            return None
        version = int(owner._version)
        return version if self.running and version != self.running[2] else None

    def came_late(self, where: tuple[str, float, str, int], norm: Any) -> None:
        self.late += 1
        call, limit, path, line = where
        if self.first is None:
            self.first = LateClip(
                call=call,
                limit=limit,
                at=self.job.step,
                late=1,
                cut=0,
                path=path,
                line=line,
                further=[("the step that has used them stands here", *self.step)],
            )
        if norm is None:
            self.cut += 1
        else:
            self.job.late.read(norm, lambda value: self.count(value > limit))
        if self.late in _TIMES:
            self.write()

    def count(self, cut: bool) -> None:
        self.cut += cut

    def ending(self) -> None:
        self.write()

    def write(self) -> None:
        if self.first is not None:
            self.job.record(replace(self.first, late=self.late, cut=self.cut))


def _holds(optimizer: Any, parameter: Any) -> bool:
    return any(each is parameter for group in optimizer.param_groups for each in group["params"])


def _plain(gradient: Any) -> bool:
    """Whether it is there, and its values can be looked at without asking other ranks."""
    import torch

    return gradient is not None and type(gradient) is torch.Tensor and not gradient.is_sparse and gradient.numel() > 0
