"""What a run writes down about modules that are cast, and parameters in float16 that an optimizer trains."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .events import Cast, HalfMoved, HalfTrained

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

_LOOKS = 3  # steps whose effect on the weights is looked at
_CASTS = 16  # that are written down
_SAMPLE = 4096  # weights of one parameter


def half(job: Job) -> None:
    """Optimizers that update float16 parameters: how many, where they were cast, and what share a step changes."""
    import torch

    job.sampled()
    job.computes()
    watch = _Half(job)
    for name in ("half", "bfloat16", "double", "to", "type"):
        job.wrap(torch.nn.Module, name, watch.cast)
    for name in ("unscale_", "step"):
        job.wrap(torch.amp.GradScaler, name, watch.asked)
    job.listen(watch.stepping, watch.stepped)


class _Half:
    """Where modules became float16, and the optimizers that were looked at."""

    def __init__(self, job: Job) -> None:
        import weakref

        self.job = job
        self.casts: list[tuple[Any, tuple[str, int]]] = []
        self.looks: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self.before: tuple[Any, Any] | None = None
        self.recorded_casts = 0  # casts

    def cast(self, original: Any) -> Any:
        import weakref

        def casting(module: Any, *args: Any, **kwargs: Any) -> Any:
            before = _formats(module)
            result = original(module, *args, **kwargs)
            after = _formats(module)
            if "float16" in after - before:
                self.casts.append((weakref.ref(module), self.job.caller()))
                del self.casts[:-32]
            for each in after - before if self.recorded_casts < _CASTS else ():
                self.recorded_casts += 1
                path, line = self.job.caller()
                self.job.record(Cast(module=type(module).__name__, format=each, path=path, line=line))
            return result

        return casting

    def asked(self, original: Any) -> Any:
        """A scaler refuses float16 gradients: what it is about to refuse is looked at before."""

        def asking(scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            if scaler.is_enabled() and self.job.scaling.scaler is None and not self.looks.get(optimizer):
                self.look(optimizer, refused=True)
            return original(scaler, optimizer, *args, **kwargs)

        return asking

    def stepping(self, optimizer: Any) -> None:
        self.before = None
        if self.looks.get(optimizer, 0) < _LOOKS:
            self.look(optimizer, refused=False)

    def look(self, optimizer: Any, *, refused: bool) -> None:
        import torch

        every = [p for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        trained = [p for p in every if p.dtype is torch.float16]
        if not trained or not _of_torch(optimizer):
            self.looks[optimizer] = self.looks.get(optimizer, 0) + (not refused)
            return
        self.looks[optimizer] = self.looks.get(optimizer, 0) + 1
        if self.looks[optimizer] == 1 or refused:
            self.tell(optimizer, trained, len(every), refused)
        if not refused:
            largest = max(trained, key=lambda p: int(p.numel()))
            self.before = (largest, largest.detach().flatten()[:_SAMPLE].clone())

    def tell(self, optimizer: Any, trained: list[Any], of: int, refused: bool) -> None:
        path, line = next((where for kept, where in reversed(self.casts) if _holds(kept(), trained[0])), ("", 0))
        cast_here = bool(path)
        if not cast_here:
            path, line = self.job.caller()
        name, first = type(optimizer).__name__, self.job.module_name(trained[0])
        self.job.record(
            HalfTrained(
                optimizer=name, trained=len(trained), of=of, first=first, refused=refused, cast=cast_here,
                path=path, line=line,
            )
        )  # fmt: skip

    def stepped(self, _optimizer: Any) -> None:
        if self.before is None:
            return
        (owner, was), self.before = self.before, None
        if owner.grad is None:
            return
        driven = owner.grad.detach().flatten()[:_SAMPLE] != 0
        moved = (owner.detach().flatten()[:_SAMPLE] != was) & driven
        step, name = self.job.step, self.job.module_name(owner)
        self.job.late.read(
            moved.sum().float() / driven.sum().clamp(min=1).float(),
            lambda share: self.job.record(HalfMoved(at=step, parameter=name, share=share)),
        )


def _formats(module: Any) -> set[str]:
    """Of its parameters, by the names of torch."""
    return {str(each.dtype).removeprefix("torch.") for each in module.parameters()}


def _holds(module: Any, parameter: Any) -> bool:
    return module is not None and any(p is parameter for p in module.parameters())


def _of_torch(optimizer: Any) -> bool:
    """Whether torch's own step updates the parameters: one of another kind may keep float32 copies of them."""
    home = next(kind for kind in type(optimizer).__mro__ if "step" in vars(kind))
    return home.__module__.startswith("torch.optim")
