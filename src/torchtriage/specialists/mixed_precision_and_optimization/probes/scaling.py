"""What a run writes down about its loss scale: skipped steps, and clips of gradients that are still scaled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from torchtriage.examine.run.job.events import ClipScaled, Skip

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

_CLOSE_LOOKS = 3  # skips in a row whose gradients are looked through: each look waits for the device
_ROWS = 4  # of skips that are looked at so: the first one is often only the search for a scale
_HARMLESS = 0.05  # of the scale: a threshold this high was multiplied by the scale on purpose


def skips(job: Job) -> None:
    """Every step that a GradScaler held back: the scale it had, and which gradients were not finite."""
    import weakref

    import torch

    total = row = rows = 0
    last = -2  # step that was skipped
    first: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()  # the step in which a scaler first stepped

    def stepping(original: Any) -> Any:
        def step(scaler: Any, *args: Any, **kwargs: Any) -> Any:
            at = job.step
            given = original(scaler, *args, **kwargs)
            if job.scaling.reached:
                first.setdefault(scaler, at)
            return given

        return step

    def skipped(optimizer: Any, scaler: Any) -> None:
        nonlocal total, row, rows, last
        total += 1
        row = row + 1 if job.step <= last + 1 else 1
        rows, last = rows + (row == 1), job.step
        if total > 100 and total % 100:
            return
        close = rows <= _ROWS and row <= _CLOSE_LOOKS
        bad, of, nearest = _not_finite(job, optimizer) if close else (None, None, None)
        path, line = job.caller()
        turn, scale = job.step - first.setdefault(scaler, job.step), scaler.get_scale()
        job.record(Skip(total=total, turn=turn, scale=scale, path=path, line=line, bad=bad, of=of, nearest=nearest))

    job.wrap(torch.amp.GradScaler, "step", stepping)
    job.listen(skipped)


def clips(job: Job) -> None:
    """Clips that fell between scaler.scale(loss).backward() and scaler.unscale_, seen for sure only afterwards.

    A clip is held until the scaler unscales or steps an optimizer that owns the clipped parameters: gradients
    that no scaler ever handles were never scaled.
    """
    import torch

    job.orderly()
    book = _Clips(job)
    job.listen(book.watching)
    scaler = torch.amp.GradScaler
    job.listen(book.backward)
    job.wrap(scaler, "scale", book.scale)
    job.wrap(scaler, "unscale_", book.unscale)
    job.wrap(scaler, "step", book.step)
    job.listen(book.clipping)


class _Clip(NamedTuple):
    """first: identity of the first parameter with a gradient. norm: before the clip; maybe on the device still."""

    first: int
    call: str
    limit: Any
    norm: Any
    place: tuple[str, int]


class _Clips:
    """The clips since the last step, and what the scaler has unscaled since its last scaling."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.times = 0
        self.scaling = False
        self.unscaled: set[int] = set()
        self.open: list[_Clip] = []

    def watching(self) -> None:
        self.unscaled.clear()
        self.open.clear()

    def scale(self, original: Any) -> Any:
        def scaling(scaler: Any, outputs: Any) -> Any:
            self.scaling = self.scaling or scaler.is_enabled()
            return original(scaler, outputs)

        return scaling

    def backward(self, _roots: Any) -> None:
        self.open.clear()  # clips of an earlier gradient: what comes now is added to it

    def unscale(self, original: Any) -> Any:
        def unscaling(scaler: Any, optimizer: Any) -> None:
            owned = self.settle(scaler, optimizer)
            original(scaler, optimizer)
            self.unscaled |= owned

        return unscaling

    def step(self, original: Any) -> Any:
        def stepping(scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            owned = self.settle(scaler, optimizer)
            result = original(scaler, optimizer, *args, **kwargs)
            self.unscaled -= owned
            return result

        return stepping

    def clipping(self, call: str, parameters: list[Any], limit: Any, norm: Any) -> None:
        first = next((p for p in parameters if p.grad is not None), None)
        if not self.scaling or first is None or id(first) in self.unscaled:
            return
        self.open.append(_Clip(id(first), call, limit, norm, self.job.caller()))
        del self.open[:-8]

    def settle(self, scaler: Any, optimizer: Any) -> set[int]:
        """Writes down the open clips of OPTIMIZER's parameters; gives the ids of all of them."""
        if not scaler.is_enabled():
            return set()
        owned = {id(p) for group in optimizer.param_groups for p in group["params"]}
        mine = [clip for clip in self.open if clip.first in owned]
        self.open = [clip for clip in self.open if clip.first not in owned]
        for clip in mine:
            if self.times < 10 or not (self.times + 1) % 100:
                self.write(clip, scaler.get_scale())
            else:
                self.times += 1
        return owned

    def write(self, clip: _Clip, scale: float) -> None:
        limit, norm = float(clip.limit), None if clip.norm is None else float(clip.norm)
        if scale == 1.0 or limit > _HARMLESS * scale or (norm is not None and not limit < norm < float("inf")):
            return  # harmless: no scale, a limit meant for scaled gradients, or nothing was cut off
        self.times += 1
        path, line = clip.place
        self.job.record(ClipScaled(call=clip.call, norm=norm, path=path, line=line, scale=scale, times=self.times))


def _not_finite(job: Job, optimizer: Any) -> tuple[int, int, str | None]:
    """How many gradients are not finite, and the name of the one that stands nearest to the loss."""
    import torch

    owners = [p for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
    bad = [p for p in owners if not bool(torch.isfinite(p.grad).all())]
    return len(bad), len(owners), job.module_name(bad[-1]) if bad else None
