"""What a run writes down about numbers that are not finite and gradients that go nowhere."""

from __future__ import annotations

from math import isfinite
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

_BUDGET = 0.01  # of the time may go into looking through all gradients
_FIRST_STEPS = 100  # of an optimizer, in which its gradients are followed
_REPLAYS = 5  # of losses in a row that the script then skipped
_PATIENCE = 20  # losses in a row that are not finite and that no step follows: no search for a loss scale
_TIRED = {"stage": "unknown", "why": f"{_REPLAYS} losses in a row that were skipped were traced before it"}
_TIMES = frozenset({3, 10, 100, 1000, 10_000, 100_000})  # when something that keeps happening is written down again


def origins(job: Job) -> None:
    """The first loss or gradient that is not finite, traced to the operation that made it; once per run.

    A healthy step costs one look at the loss and one at the gradient of the first parameter, through which a NaN of
    any later layer comes; the norm of all gradients is taken as often as one per cent of the time allows. When
    one is not finite, the forward passes since the last backward are replayed with their own inputs, random state
    and autocast.
    """
    import torch

    watch = _Origins(job)
    job.wrap(torch.amp.GradScaler, "scale", watch.scale)
    for listener in (watch.forward, watch.backward, watch.backwarded, watch.stepping, watch.stepped, watch.skipped):
        job.on(listener.__name__, listener)


def carried(job: Job) -> None:
    """Optimizers whose gradients pile up: used by a step, then added to by the next backward without a zero_grad.

    Only an unbroken chain counts: the same gradient tensor with the same version right after the step and right
    before the next backward. Accumulation between two steps, a GAN's two optimizers and closures break it.
    A loop clears its gradients always or never, so an optimizer's first steps tell.
    """
    watch = _Carried(job)
    for listener in (watch.backward, watch.backwarded, watch.stepped):
        job.on(listener.__name__, listener)


def updates(job: Job) -> None:
    """Optimizers that never step although backward keeps filling the gradients of their parameters."""
    import torch

    ledgers: list[Any] = []

    def init(original: Any) -> Any:
        def built(self: Any, *args: Any, **kwargs: Any) -> None:
            original(self, *args, **kwargs)
            ledgers.append(job.ledger(self))

        return built

    def backwarded(roots: Any) -> None:
        for ledger in ledgers.copy():
            _book(job, ledger, ledgers, roots)

    def turn(optimizer: Any, _scaler: Any = None) -> None:
        for ledger in ledgers:
            if ledger.optimizer() is optimizer:
                ledger.steps += 1
                ledger.watched, ledger.first = [], []

    def ending() -> None:
        for ledger in ledgers:
            job.record("updates", **ledger.facts(), last=True)

    job.wrap(torch.optim.Optimizer, "__init__", init)
    job.on("backwarded", backwarded)
    job.on("stepped", turn)
    job.on("skipped", turn)
    job.on("ending", ending)


def _book(job: Job, ledger: Any, ledgers: list[Any], roots: Any) -> None:
    if ledger.optimizer() is None:
        ledgers.remove(ledger)
        job.record("updates", **ledger.facts(), last=True)
    elif not ledger.steps and ledger.filled(job.caller) and ledger.backwards in _TIMES:
        ledger.look_beside(job.leaves(roots), ledgers)
        job.record("updates", **ledger.facts())


class _Origins:
    """Looks at every loss and gradient, and keeps what a replay would need until the next step.

    What is found is held until an optimizer or scaler has its turn on it: a script that itself skips such a step is
    healthy. Only _PATIENCE losses in a row that are all skipped are told without one.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.calls = job.calls()
        self.scaled: list[tuple[Any, Any]] = []
        self.spent = self.done = False
        self.due = 0.0  # when all gradients are looked at again; in between, the first one is
        self.turn = self.row = 0  # backward passes begun; of them, in a row, those of a loss that is not finite
        self.held: _Held | None = None
        self.first: _Held | None = None  # of the row
        self.unread: Any = None  # on a device: whether the loss of this backward is finite

    def scale(self, original: Any) -> Any:
        def scaling(scaler: Any, outputs: Any) -> Any:
            """The unscaled loss will be judged: a scaled one may overflow in health, and its step is skipped then."""
            result = original(scaler, outputs)
            if not self.done:
                self.scaled[:] = [*self.scaled[-3:], (result, outputs)]
            return result

        return scaling

    def forward(self, module: Any, args: Any, kwargs: Any) -> None:
        import torch

        if self.done or not torch.is_grad_enabled():
            return
        if self.spent:
            self.calls.clear()
            self.spent = False
        self.calls.keep(module, args, kwargs)

    def backward(self, roots: Any) -> None:
        import torch

        if self.done:
            return
        self.turn, self.unread = self.turn + 1, None
        unscaled = [next((loss for result, loss in self.scaled if result is root), root) for root in roots]
        losses = [loss for loss in unscaled if isinstance(loss, torch.Tensor) and loss.is_floating_point()]
        for loss in losses:
            if loss.is_cuda:
                self.unread = torch.isfinite(loss.detach()).all()
            elif not (isfinite(loss.item()) if loss.numel() == 1 else _all_finite(loss.detach())):
                self.hold_loss(losses)
                return

    def hold_loss(self, losses: list[Any]) -> None:
        self.row += 1
        facts = self.job.why_forward(self.calls, losses) if self.row <= _REPLAYS else _TIRED
        reached = {id(leaf) for leaf in self.job.leaves(losses)}
        self.held = _Held({"seen": "loss", "at": self.job.step, **facts}, self.turn, reached)
        self.first = self.first if self.row > 1 else self.held
        if self.row == _PATIENCE and self.first:
            self.tell(self.first.facts)

    def backwarded(self, _roots: Any) -> None:
        self.spent = True
        self.scaled.clear()

    def stepping(self, optimizer: Any) -> None:
        import torch

        held = self.held is not None and self.held.reaches(optimizer)
        if self.done or held or getattr(optimizer, "found_inf", None) is not None:
            return  # a fused optimizer is told by its scaler to leave the parameters alone
        began = perf_counter()
        if self.due > began:
            first = next((p.grad for group in optimizer.param_groups for p in group["params"]), None)
            total = (
                first.sum().abs() if first is not None and (first.is_floating_point() or first.is_complex()) else None
            )
        else:
            total = self.job.total_norm(optimizer)
            self.due = began + (perf_counter() - began) / _BUDGET
        if total is not None and total.is_cuda:
            self.judge_later(torch.isfinite(total))
        elif total is not None and not isfinite(total.item()):
            self.hold_gradients(optimizer)

    def hold_gradients(self, optimizer: Any) -> None:
        owners = self.job.with_gradient(optimizer)
        bad = [owner for owner in owners if not _all_finite(owner.grad)]
        if bad:  # else the norm of large finite gradients overflowed
            name = self.job.module_name(bad[-1])
            count = {"bad": len(bad), "of": len(owners), "nearest": name or "a tensor of no module"}
            facts = {"seen": "gradient", "at": self.job.step, **count, **self.job.why_backward(self.calls)}
            self.held = _Held(facts, self.turn, {id(owner) for owner in bad})

    def stepped(self, optimizer: Any) -> None:
        self.calls.clear()
        if self.unread is not None:
            self.judge_later(self.unread)
            self.unread = None
        if self.held and self.held.reaches(optimizer):
            if self.held.turn == self.turn or not all(_all_finite(p.grad) for p in self.job.with_gradient(optimizer)):
                self.tell(self.held.facts)
            self.held, self.first, self.row = None, None, 0

    def skipped(self, optimizer: Any, _scaler: Any) -> None:
        if self.held and self.held.turn == self.turn and self.held.reaches(optimizer):
            self.tell(self.held.facts)  # the loss before scaling: no search for a scale mends it

    def judge_later(self, finite: Any) -> None:
        step = self.job.step

        def then(value: float) -> None:
            if not value:
                self.tell({"seen": "late", "at": step, "stage": "unknown", "why": "on CUDA it is read a step late"})

        self.job.late.read(finite, then)

    def tell(self, facts: dict[str, Any]) -> None:
        if not self.done:
            self.done = True
            self.job.record("non-finite", **facts)
        self.held = self.first = None
        self.calls, self.scaled[:] = self.job.calls(), []


class _Held:
    """A finding that waits for a step: its facts, the backward pass it belongs to, ids of the tensors concerned."""

    def __init__(self, facts: dict[str, Any], turn: int, reached: set[int]) -> None:
        self.facts, self.turn, self.reached = facts, turn, reached

    def reaches(self, optimizer: Any) -> bool:
        return any(id(p) in self.reached for group in optimizer.param_groups for p in group["params"])


class _Carried:
    """The chains of all optimizers that are in their first steps."""

    def __init__(self, job: Job) -> None:
        import weakref

        self.job = job
        self.watched: weakref.WeakKeyDictionary[Any, _Chain] = weakref.WeakKeyDictionary()
        self.told: weakref.WeakSet[Any] = weakref.WeakSet()
        self.line: tuple[str, int] = ("", 0)

    def backward(self, _roots: Any) -> None:
        for chain in self.watched.values():
            chain.before_backward()

    def backwarded(self, _roots: Any) -> None:
        for chain in self.watched.values():
            if chain.after_backward():
                self.line = self.job.caller()

    def stepped(self, optimizer: Any) -> None:
        if optimizer in self.told:
            return
        chain = self.watched.setdefault(optimizer, _Chain())
        chain.after_step(lambda: self.job.with_gradient(optimizer))
        if chain.steps >= _FIRST_STEPS:
            del self.watched[optimizer]
            self.told.add(optimizer)
        if chain.running in _TIMES:
            name, (path, line) = type(optimizer).__name__, self.line
            self.job.record("carried", optimizer=name, running=chain.running, path=path, line=line)


class _Chain:
    """The gradients of one optimizer: are they still those that its last step used?"""

    def __init__(self) -> None:
        self.owners: list[Any] = []
        self.noted: list[tuple[int, int]] | None = None
        self.unbroken = self.added = False
        self.running = self.steps = 0

    def before_backward(self) -> None:
        now = self.state()
        self.unbroken = self.unbroken and now is not None and now == self.noted
        self.unbroken = self.unbroken and any(bool(owner.grad.any()) for owner in self.owners)
        self.noted = now

    def after_backward(self) -> bool:
        now = self.state()
        self.added = self.added or (self.unbroken and now != self.noted)
        self.noted = now
        return self.unbroken and self.added

    def after_step(self, with_gradient: Any) -> None:
        """WITH_GRADIENT gives the optimizer's parameters that have a gradient."""
        self.steps += 1
        self.running = self.running + 1 if self.unbroken and self.added else 0
        if self.state() is None:
            every = with_gradient()
            self.owners = [every[0], every[-1]] if every else []
        self.noted = self.state()
        self.unbroken, self.added = self.noted is not None, False

    def state(self) -> list[tuple[int, int]] | None:
        if not self.owners or any(owner.grad is None for owner in self.owners):
            return None
        return [(id(owner.grad), owner.grad._version) for owner in self.owners]


def _all_finite(tensor: Any) -> bool:
    import torch

    return bool(torch.isfinite(tensor).all())
