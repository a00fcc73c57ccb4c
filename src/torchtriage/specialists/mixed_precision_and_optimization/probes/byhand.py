"""What a run writes down about gradients that the script changes by itself while they are still scaled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchtriage.examine.run.job.events import ClippedByHook, EditedByHand

from .filled import sample

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

_TOLD = 8  # changes that are written down
_UNTOUCHED = 24  # turns after which a script that has changed nothing is taken to change nothing
_TRIES = 4  # steps in which the line is looked for
_SAMPLE = 256  # numbers of one gradient


def by_hand(job: Job) -> None:
    """Gradients before and after what changed them between a scaled backward and the scaler: three of each optimizer.

    What torch's own clips do is another probe's. In later steps the line is looked for that changes them.
    """
    import torch

    job.orderly()
    job.computes()
    watch = _ByHand(job)
    for name in ("scale", "unscale_", "step"):
        job.wrap(torch.amp.GradScaler, name, getattr(watch, name.strip("_")))
    job.listen(watch.backwarded, watch.clipping, watch.stepped, watch.skipped, watch.watching)


class _ByHand:
    def __init__(self, job: Job) -> None:
        import weakref

        self.job, self.probe = job, job.placing
        self.optimizers: weakref.WeakSet[Any] = weakref.WeakSet()  # that a scaler has stepped
        self.scaled = False  # a loss since the last turn
        self.looks: dict[int, _Look] = {}
        self.follower: Any = None
        self.lines: list[tuple[str, int]] = []
        self.told = self.tries = self.hooked = self.untouched = 0

    def scale(self, original: Any) -> Any:
        def scaling(scaler: Any, outputs: Any) -> Any:
            self.scaled = self.scaled or scaler.is_enabled()
            return original(scaler, outputs)

        return scaling

    def backwarded(self, _roots: Any) -> None:
        self.rest()
        if not self.scaled:
            return
        self.looks = {id(each): _Look(self.job.with_gradient(each)) for each in list(self.optimizers)}
        for look in self.looks.values():
            if self.hooked < _TOLD:
                self.hooks(look)
        if self.told and not self.lines and self.tries < _TRIES:
            self.tries += 1
            self.follower = self.job.follow(lambda: any(each.changed() for each in self.looks.values()))

    def hooks(self, look: _Look) -> None:
        """Gradients of parameters with a hook of the user's, which may have clipped them while backward ran."""
        import torch

        found = [(owner, where) for owner in look.owners if (where := self.hook_of(owner)) is not None]
        if not found:
            return
        self.hooked += 1
        step, scale, line = self.job.step, self.job.clock.scale, found[0][1]
        sizes = [owner.grad.detach().abs().max().float() for owner, _ in found]
        norms = [owner.grad.detach().norm().float() for owner, _ in found]
        self.job.late.read_all(
            torch.stack([*sizes, *norms]),
            lambda told: self.job.record(
                ClippedByHook(at=step, scale=scale, line=line, sizes=told[: len(sizes)], norms=told[len(sizes) :])
            ),
        )

    def hook_of(self, parameter: Any) -> tuple[str, int] | None:
        """Where the user's hook on a parameter's gradient is written."""
        for name in ("_backward_hooks", "_post_accumulate_grad_hooks"):
            for hook in (getattr(parameter, name, None) or {}).values():
                code = self.job.written.code_of(hook)
                path = self.job.path_of(code) if code is not None else None
                if code is not None and path is not None:
                    return path, code.co_firstlineno
        return None

    def clipping(self, *_: Any) -> None:
        self.rest()

    def rest(self) -> None:
        """What changes the gradients from here on is somebody else's."""
        self.looks.clear()
        if self.follower is not None:
            self.lines, self.follower = self.follower.stop(), None

    def unscale(self, original: Any) -> Any:
        def unscaling(scaler: Any, optimizer: Any) -> None:
            self.settle(scaler, optimizer)
            original(scaler, optimizer)

        return unscaling

    def step(self, original: Any) -> Any:
        def stepping(scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            if scaler.is_enabled():
                self.settle(scaler, optimizer)
                self.optimizers.add(optimizer)
            return original(scaler, optimizer, *args, **kwargs)

        return stepping

    def settle(self, scaler: Any, optimizer: Any) -> None:
        """The scaler is about to divide the gradients: were they changed since the backward?"""
        look = self.looks.pop(id(optimizer), None)
        if self.follower is not None:
            self.lines, self.follower = self.follower.stop(), None
        if look is not None and scaler.is_enabled() and look.changed():
            self.tell(look, self.job.clock.scale or scaler._init_scale)
        elif look is not None:
            self.untouched += 1
            if self.untouched >= _UNTOUCHED and not self.told:
                self.job.withdraw(self.probe)

    def tell(self, look: _Look, scale: float) -> None:
        self.told += 1
        step, lines, met = self.job.step, self.lines, self.job.caller()
        owners, numbers = len(look.owners), look.figures()
        if numbers is not None:
            self.job.late.read_all(
                numbers,
                lambda told: self.job.record(
                    EditedByHand(
                        at=step, scale=scale, total=told[-1], lines=lines, met=met,
                        each=[told[5 * n : 5 * n + 5] for n in range(owners)],
                    )
                ),
            )  # fmt: skip
        if self.told >= _TOLD:
            self.job.withdraw(self.probe)

    def stepped(self, _optimizer: Any) -> None:
        self.scaled = False
        self.rest()

    def skipped(self, optimizer: Any, _scaler: Any) -> None:
        self.stepped(optimizer)

    def watching(self) -> None:
        self.scaled = False
        self.rest()


class _Look:
    """Three of an optimizer's gradients as a backward left them: the first, the middle one, the last."""

    def __init__(self, owners: list[Any]) -> None:
        self.every = [(owner, owner.grad, owner.grad._version) for owner in owners]
        self.owners = [owners[at] for at in sorted({0, len(owners) // 2, len(owners) - 1})] if owners else []
        self.state = self.now()
        self.before = [_numbers(each.grad) for each in self.owners]

    def now(self) -> list[Any]:
        grads = [each.grad for each in self.owners]
        return [(id(grad), grad._version, sample(grad)) for grad in grads if grad is not None]

    def changed(self) -> bool:
        return self.now() != self.state

    def figures(self) -> Any:
        """Of each of the three: the factor between before and after, what a factor does not explain, what a clamp to
        its largest number does not explain, that number, its norm; and the norm of all that were changed.
        """
        import torch

        if any(each.grad is None for each in self.owners):
            return None
        told = [each for pair in zip(self.owners, self.before, strict=True) for each in _compared(*pair)]
        changed = [p.grad for p, grad, version in self.every if p.grad is not grad or grad._version != version]
        changed = [grad for grad in changed if grad is not None] or [p.grad for p, _, _ in self.every]
        norms = torch._foreach_norm(changed)  # pyright: ignore  # public in all but its name
        return torch.stack([*told, torch.stack([each.float() for each in norms]).norm()])


def _numbers(grad: Any) -> Any:
    return grad.detach().flatten()[:_SAMPLE].float().clone()


def _compared(owner: Any, before: Any) -> list[Any]:
    after, tiny = _numbers(owner.grad), 1e-30
    factor = (after * before).sum() / (before * before).sum().clamp(min=tiny)
    largest = owner.grad.detach().abs().max().float()
    size = after.norm().clamp(min=tiny)
    rest = (after - factor * before).norm() / size
    clamped = (after - before.clamp(-largest, largest)).norm() / size
    return [factor, rest, clamped, largest, owner.grad.detach().norm().float()]
