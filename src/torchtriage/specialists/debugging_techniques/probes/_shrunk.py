"""Gradients that the script's own lines make smaller after the step that used them."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from .events import LateShrunk

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

_PARAMETERS = 2  # of an optimizer, the first and the last ones, whose gradients are looked at
_VALUES = 256  # of each gradient
_EXACT = 1e-3  # relative: how closely what is left is a multiple of what was there, or cut off at a value
_TRIES = 3  # steps in which the line is looked for
_TIMES = frozenset({3, 10, 100, 1000, 10_000, 100_000})  # when something that keeps happening is written down again


class _Kept:
    """A gradient as its optimizer's step left it."""

    def __init__(self, parameter: Any, values: Any) -> None:
        self.parameter, self.values = weakref.ref(parameter), values
        self.state = id(parameter.grad), parameter.grad._version

    def changed(self) -> bool:
        parameter = self.parameter()
        gradient = parameter.grad if parameter is not None else None
        if gradient is None or (id(gradient), gradient._version) != self.state:
            return gradient is not None
        # through .data no version tells
        return bool(gradient.is_cpu) and not gradient.detach().flatten()[:_VALUES].equal(self.values)

    def cleared(self) -> bool:
        parameter = self.parameter()
        gradient = parameter.grad if parameter is not None else None
        return gradient is None or (gradient.is_cpu and not bool(gradient.any()))

    def told(self) -> Any:
        """Factor, what is no multiple of it, what was not cut off at the largest value, by how much the largest was
        above that: one tensor, of numbers that are not finite where nothing is left.
        """
        import torch

        parameter: Any = self.parameter()
        old, new = self.values.float(), parameter.grad.detach().flatten()[:_VALUES].float()
        factor, most = (new * old).sum() / (old * old).sum(), new.abs().max()
        other = (new - factor * old).abs().max() / most
        uncut = (new - old.clamp(-most, most)).abs().max() / most
        return torch.stack([factor, other, uncut, old.abs().max() / most])


class Shrunk:
    """Of each optimizer: its gradients after the step, and what of them the next clearing finds.

    Only what is then cleared counts: gradients that the next backward adds to are used again.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.kept: weakref.WeakKeyDictionary[Any, list[_Kept]] = weakref.WeakKeyDictionary()
        self.found: weakref.WeakKeyDictionary[Any, tuple[list[_Kept], Any]] = weakref.WeakKeyDictionary()
        self.scaled = self.cut = 0  # sightings: all made smaller by one factor, or cut off at a value
        self.factors = (1.0, 0.0)  # the least and the largest
        self.tries = _TRIES
        self.follower: Any = None
        self.hands: list[tuple[str, int]] = []  # the line, and who called it
        self.step: tuple[str, int] = ("", 0)

    def watching(self) -> None:
        self.kept.clear()
        self.found.clear()
        self.followed()

    def stepping(self, _optimizer: Any) -> None:
        """What another optimizer uses as well is no longer this one's."""
        self.followed()
        self.kept.clear()

    def stepped(self, optimizer: Any) -> None:
        owners = [p for group in optimizer.param_groups for p in group["params"] if _plain(p.grad)]
        some = owners if len(owners) <= 2 * _PARAMETERS else [*owners[:_PARAMETERS], *owners[-_PARAMETERS:]]
        self.kept[optimizer] = kept = [_Kept(p, values) for p, values in zip(some, _copies(some), strict=True)]
        self.step = self.job.caller()
        if (self.scaled or self.cut) and self.tries and not self.hands:
            self.tries -= 1
            self.follower = self.job.follow(lambda: any(each.changed() for each in kept))

    def skipped(self, _optimizer: Any, _scaler: Any) -> None:
        self.kept.clear()

    def clipping(self, *_: Any) -> None:
        """What torch clips late is told as such."""
        self.kept.clear()

    def clearing(self, original: Any) -> Any:
        def zero_grad(owner: Any, *args: Any, **kwargs: Any) -> Any:
            self.followed()
            for optimizer in [owner] if owner in self.kept else list(self.kept):
                changed = [each for each in self.kept[optimizer] if each.changed()]
                if changed:
                    self.found[optimizer] = changed, [each.told() for each in changed]
            self.kept.clear()
            return original(owner, *args, **kwargs)

        return zero_grad

    def followed(self) -> None:
        if self.follower is not None:
            self.hands, self.follower = self.follower.stop() or self.hands, None

    def backward(self, _roots: Any) -> None:
        import torch

        self.followed()
        for kept, told in self.found.values():
            if all(each.cleared() for each in kept):
                self.job.late.read_all(torch.cat(told), self.judge)
        self.found.clear()
        self.kept.clear()

    def judge(self, numbers: list[float]) -> None:
        """Counts when the gradients of all parameters were made smaller in a way that clips do."""
        rows = [numbers[at : at + 4] for at in range(0, len(numbers), 4)]
        scaled = [factor for factor, other, _, _ in rows if other < _EXACT and 0 < factor < 1 - _EXACT]
        cut = sum(uncut < _EXACT < _EXACT + 1 < above for _, other, uncut, above in rows if not other < _EXACT)
        if not rows or len(scaled) + cut < len(rows):
            return
        self.cut, self.scaled = self.cut + bool(cut), self.scaled + (not cut)
        if scaled:
            self.factors = min(self.factors[0], *scaled), max(self.factors[1], *scaled)
        if self.scaled + self.cut in _TIMES:
            self.write()

    def ending(self) -> None:
        if self.scaled or self.cut:
            self.write()

    def write(self) -> None:
        (path, line), *above = self.hands or [self.step]
        further = [("what does so is called from here", *each) for each in above]
        further.append(("the step that has used them stands here", *self.step))
        scaled, cut, factors = self.scaled, self.cut, self.factors
        self.job.record(LateShrunk(scaled=scaled, cut=cut, factors=factors, path=path, line=line, further=further))


def _copies(parameters: list[Any]) -> list[Any]:
    """The first values of each gradient: where all are alike, copied at once, by one kernel instead of four."""
    import torch

    parts = [p.grad.detach().flatten()[:_VALUES] for p in parameters]
    if len({(part.dtype, part.device) for part in parts}) != 1:
        return [part.clone() for part in parts]
    return list(torch.cat(parts).split([len(part) for part in parts]))


def _plain(gradient: Any) -> bool:
    import torch

    return type(gradient) is torch.Tensor and not gradient.is_sparse and not gradient.is_meta
