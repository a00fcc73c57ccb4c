"""What a run writes down about the first number that is not finite."""

from __future__ import annotations

import weakref
from itertools import islice
from math import isfinite
from time import perf_counter_ns as now
from typing import TYPE_CHECKING, Any

from torchtriage.examine.run.job.events import NonFinite, replace

from . import _singular
from ._delivered import Delivered, Refusals
from ._guard import Guard

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

_BUDGET = 0.003  # of the time may go into looking through all gradients
_REPLAYS = 5  # of losses in a row that the script then skipped
_PATIENCE = 20  # losses in a row that are not finite and that no step follows: no search for a loss scale
_NEAR, _SMALL = 8, 1 << 14  # parameters among which a gradient is looked for of so few values
_TIRED = NonFinite(stage="unknown", why=f"{_REPLAYS} losses in a row that were skipped were traced before it")


def origins(job: Job) -> None:
    """The first loss or gradient that is not finite, traced to the operation that made it; once per run.

    A healthy step costs one look at the loss and one at the gradient of one of the first parameters, through which a
    NaN of any later layer comes; the norm of all gradients is taken as often as 0.3 per cent of the time allows. When
    one is not finite, the forward passes since the last backward are replayed with their own inputs, random state
    and autocast.
    """
    import torch

    watch = _Origins(job)
    job.place(f"{job.placing} refused", Refusals(job, watch.delivered).place)
    job.wrap(torch.amp.GradScaler, "scale", watch.scale)
    job.listen(
        watch.delivered.batch,
        watch.forward,
        watch.backward,
        watch.stepping,
        watch.stepped,
        watch.skipped,
    )


class _Origins:
    """Looks at every loss and gradient, and keeps what a replay would need until the next step.

    What is found is held until an optimizer or scaler has its turn on it: a script that itself skips such a step is
    healthy. Only _PATIENCE losses in a row that are all skipped are told without one.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.calls = job.calls()
        self.delivered = Delivered(job)
        self.scaled: list[tuple[Any, Any]] = []
        job.rest.guard = Guard(job, self.calls, self.scaled, self.delivered)
        job.undo(self.leave_guard)
        self.done = False
        self.spent = 0  # backward passes until the first of the calls
        self.due = 0  # when all gradients are looked at again, in nanoseconds; in between, the first one is
        self.turn = self.row = 0  # backward passes begun; of them, in a row, those of a loss that is not finite
        self.held: _Held | None = None
        self.first: _Held | None = None  # of the row
        self.latest: list[Any] = []  # roots of this backward, weakly
        self.unread: Any = None  # on a device: the loss of this backward, or the sum of its values

    def scale(self, original: Any) -> Any:
        def scaling(scaler: Any, outputs: Any) -> Any:
            """The unscaled loss will be judged: a scaled one may overflow in health, and its step is skipped then."""
            result = original(scaler, outputs)
            if not self.done:
                self.scaled[:] = [*self.scaled[-3:], (result, outputs)]
            return result

        return scaling

    def forward(self, module: Any, args: Any, kwargs: Any) -> None:
        if self.done or not self.job.learning:
            return
        backwards = self.job.clock.count("backwards")
        if self.spent != backwards:
            self.calls.clear()
            self.spent = backwards
        self.calls.keep(module, args, kwargs, watched=self.job.governor.watching)

    def backward(self, roots: Any) -> None:
        if self.done:
            return
        self.turn, self.unread = self.turn + 1, None
        if self.job.governor.watching:
            self.calls.watched()
        self.latest = [weakref.ref(root) for root in roots]
        known = self.job.loss
        if known is None or len(roots) > 1 or not isfinite(known):  # where a scaled loss is finite, so is the loss
            self.judge(roots)
        self.scaled.clear()

    def judge(self, roots: Any) -> None:
        import torch

        unscaled = [self.before_scaling(root) for root in roots] if self.scaled else roots
        losses = [loss for loss in unscaled if isinstance(loss, torch.Tensor) and _has_numbers(loss)]
        for loss in losses:
            if not loss.is_cpu:
                # the number itself: whether it is finite would take the device five kernels
                self.unread = loss.detach() if loss.numel() == 1 else loss.detach().sum()
            elif not (isfinite(loss.item()) if loss.numel() == 1 else _all_finite(loss.detach())):
                self.hold_loss(losses)
                return

    def before_scaling(self, root: Any) -> Any:
        return next((loss for result, loss in self.scaled if result is root), root)

    def hold_loss(self, losses: list[Any]) -> None:
        self.row += 1
        event = self.job.why_forward(self.calls, losses) if self.row <= _REPLAYS else _TIRED
        if event.stage == "loss":
            event = self.in_loss(event, losses)
        reached = {id(leaf) for leaf in self.job.leaves(losses)}
        self.held = _Held(self.with_batch(replace(event, seen="loss")), self.turn, reached)
        self.first = self.first if self.row > 1 else self.held
        if self.row == _PATIENCE and self.first:
            self.tell(self.first.event)

    def stepping(self, optimizer: Any) -> None:
        held = self.held is not None and self.held.reaches(optimizer)
        if self.done or held or getattr(optimizer, "found_inf", None) is not None:
            return  # a fused optimizer is told by its scaler to leave the parameters alone
        if self.due > self.job.clock.began or self.job.governor.is_quiet:
            total = _first_sum(optimizer)
        else:
            began = now()
            norms = self.job.norms(optimizer)
            total = norms.sum() if norms is not None else None
            self.due = began + int((now() - began) / _BUDGET)
        if total is None:
            return
        if not total.is_cpu:
            self.judge_later(total)
        elif not _is_finite(total):
            self.hold_gradients(optimizer)

    def hold_gradients(self, optimizer: Any) -> None:
        owners = self.job.with_gradient(optimizer)
        bad = [owner for owner in owners if not _all_finite(owner.grad)]
        if bad:  # else the norm of large finite gradients overflowed
            name = self.job.module_name(bad[-1])
            event = self.job.why_backward(self.calls)
            if event.stage == "unknown":
                event = self.in_loss(event, [loss for kept in self.latest if (loss := kept()) is not None])
            nearest = name or "a tensor of no module"
            event = replace(event, seen="gradient", bad=len(bad), of=len(owners), nearest=nearest)
            self.held = _Held(self.with_batch(event), self.turn, {id(owner) for owner in bad})

    def with_batch(self, event: NonFinite) -> NonFinite:
        """EVENT of this step, with its batch where that was the first to be not finite."""
        event, batch = replace(event, at=self.job.step), self.delivered.not_finite(self.calls)
        return replace(event, batch=batch) if batch is not None else event

    def in_loss(self, event: NonFinite, losses: list[Any]) -> NonFinite:
        """EVENT, with what can be said of the part of the graph that no repeated pass computes."""
        for loss in losses:
            found = _singular.lines(self.job, loss) if loss.grad_fn is not None else []
            if len(found) == 1:
                return replace(event, at_op=found[0][0], path=found[0][1], line=found[0][2])
            if found:
                says = "is called here, whose value or slope is not finite at zero"
                return replace(event, further=[(f"{op} {says}", path, line) for op, path, line in found])
        return event

    def stepped(self, optimizer: Any) -> None:
        self.calls.clear()
        self.delivered.leave()
        if self.unread is not None:
            self.judge_later(self.unread)
            self.unread = None
        if self.held and self.held.reaches(optimizer):
            if self.held.turn == self.turn or not all(_all_finite(p.grad) for p in self.job.with_gradient(optimizer)):
                self.tell(self.held.event)
            self.held, self.first, self.row = None, None, 0

    def skipped(self, optimizer: Any, _scaler: Any) -> None:
        if self.held and self.held.turn == self.turn and self.held.reaches(optimizer):
            self.tell(self.held.event)  # the loss before scaling: no search for a scale mends it

    def judge_later(self, number: Any) -> None:
        late = NonFinite(seen="late", at=self.job.step, stage="unknown", why="on CUDA it is read a step late")

        def then(value: float) -> None:
            if not isfinite(value):
                self.tell(late)

        self.job.late.read(number, then)

    def tell(self, event: NonFinite) -> None:
        if not self.done:
            self.done = True
            self.job.record(event)
        self.held = self.first = None
        self.calls, self.scaled[:] = self.job.calls(), []
        self.leave_guard()

    def leave_guard(self) -> None:
        self.job.rest.guard = None


class _Held:
    """A finding that waits for a step: the backward pass it belongs to, ids of the tensors concerned."""

    def __init__(self, event: NonFinite, turn: int, reached: set[int]) -> None:
        self.event, self.turn, self.reached = event, turn, reached

    def reaches(self, optimizer: Any) -> bool:
        return any(id(p) in self.reached for group in optimizer.param_groups for p in group["params"])


def _has_numbers(loss: Any) -> bool:
    """Whether LOSS is of floating point and more than a shape: neither on meta nor fake."""
    return bool(loss.is_floating_point()) and loss.device.type != "meta" and not hasattr(loss, "fake_mode")


def _first_sum(optimizer: Any) -> Any:
    """Of a small gradient among those of the first parameters, through which a NaN of any later layer comes, too: the
    very first one of a language model has millions of values. Of that where none is small; None where it has none.
    """
    first: Any = None
    for parameter in islice(optimizer.param_groups[0]["params"], _NEAR):
        gradient = parameter.grad
        if gradient is None or not (gradient.is_floating_point() or gradient.is_complex()):
            break
        if gradient.numel() <= _SMALL:
            return gradient.sum()
        first = gradient if first is None else first
    return first.sum() if first is not None else None


def _is_finite(total: Any) -> bool:
    value = total.item()
    return bool(value - value == 0)  # of a complex number, too


def _all_finite(tensor: Any) -> bool:
    import torch

    return bool(torch.isfinite(tensor).all())
