"""What a run writes down about the order of a GradScaler's calls: steps past it, updates left out, gradients mixed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import losses
from ._tally import Tally
from .events import ScalerBypassed, ScalerRaised, ScalerRenewed, ScalerStepped, UnscaledAdded
from .filled import Book

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchtriage.examine.run.job.job import Job

    from .filled import Filled

_RENEWED = 3  # steps of an optimizer without an update that need a new scaler each time
_DEPTH = 8  # nodes between a scaled loss and the root of its backward: a division, a sum of two


def calls(job: Job) -> None:
    """Which gradients are scaled when an optimizer steps, and which calls of a scaler the script leaves out.

    A pass is scaled when its root comes from GradScaler.scale, and plain when it surely does not. Gradients that
    something unknown has changed since, and scales that were multiplied in by hand, are never judged.
    """
    import torch

    job.orderly()
    watch = _Calls(job)
    scaler = torch.amp.GradScaler
    for name in ("scale", "unscale_", "step", "update"):
        job.wrap(scaler, name, getattr(watch, name.strip("_")))
    job.listen(watch.backward, watch.backwarded, watch.stepping, watch.stepped, watch.skipped, watch.watching)


class _Calls:
    """What each optimizer's gradients consist of, and what the scaler has been asked since its last update."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.book = Book(job)
        self.book.on = False  # until a loss is scaled
        self.scaled: dict[int, Any] = {}  # nodes that GradScaler.scale made, by identity, until they are used
        self.given: dict[int, Any] = {}  # and those of the losses that it was given
        self.part = ""  # of the pass under way: scaled, plain or unknown
        self.past: ScalerBypassed | None = None  # a direct step under way on scaled gradients
        self.since = _Since()
        self.places: dict[int, tuple[str, int]] = {}
        self.tally = Tally(job)
        self.lines: set[tuple[str, int]] = set()  # that let a scaler step

    def scale(self, original: Any) -> Any:
        def scaling(scaler: Any, outputs: Any) -> Any:
            result = original(scaler, outputs)
            if scaler.is_enabled():
                self.book.on = True
                self.scaled.update((id(each), each) for each in _made_by(result))
                self.given.update((id(each), each) for each in _made_by(outputs))
            return result

        return scaling

    def watching(self) -> None:
        self.book.forget()
        self.scaled.clear()
        self.given.clear()
        self.since = _Since(whole=False)

    def backward(self, roots: Any) -> None:
        if self.book.on:
            self.book.check()
            self.part = self._kind(roots)

    def _kind(self, roots: Any) -> str:
        kinds = {self._of_root(root) for root in roots}
        return kinds.pop() if len(kinds) == 1 else "unknown"

    def _of_root(self, root: Any) -> str:
        top = getattr(root, "grad_fn", None)
        found = [node for node in losses.nodes(top, _DEPTH) if id(node) in self.scaled]
        if found:
            for node in found:
                del self.scaled[id(node)]
            return "scaled"
        if id(top) in self.given:
            return "plain"
        unknown = top is None or self.scaled or root.numel() != 1 or losses.by_hand(top)
        return "unknown" if unknown else "plain"

    def backwarded(self, _roots: Any) -> None:
        if not self.book.on:
            return
        self.since.backwards += 1
        for filled in self.book:
            torn = filled.unscaled
            if filled.backwarded(lambda: (self.part, self.job.caller())) and torn and self.part == "scaled":
                self._added(filled)
        self.given.clear()

    def _added(self, filled: Filled) -> None:
        """A scaled pass has added to gradients that unscale_ had divided already."""
        path, line = self.places.get(id(filled), ("", 0))
        self.tally.tell(UnscaledAdded(path=path, line=line, parts=filled.unscaled))

    def unscale(self, original: Any) -> Any:
        def unscaling(scaler: Any, optimizer: Any) -> None:
            if not scaler.is_enabled() or self.job.scaling.scaler is not None:
                original(scaler, optimizer)
                return
            filled = self.book.of(optimizer)
            filled.check()
            try:
                original(scaler, optimizer)
            except (AssertionError, RuntimeError) as error:
                self._raised("unscale_", error, filled)
                raise
            filled.accept()
            filled.unscaled = len(filled.parts)
            self.since.asked += 1
            self.places[id(filled)] = self.job.caller()

        return unscaling

    def step(self, original: Any) -> Any:
        def stepping(scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            if not scaler.is_enabled():
                return original(scaler, optimizer, *args, **kwargs)
            filled = self.book.of(optimizer)
            filled.check()
            self._plain(optimizer, filled)
            try:
                result = original(scaler, optimizer, *args, **kwargs)
            except (AssertionError, RuntimeError) as error:
                self._raised("step", error, filled)
                raise
            self.since.asked += 1
            self.since.stepped = self._steps_at(*self.job.caller())
            self._repeated(optimizer)
            return result

        return stepping

    def _steps_at(self, path: str, line: int) -> tuple[str, int]:
        """Writes down once from where a scaler steps: what it refuses later may come while nobody watches."""
        if (path, line) not in self.lines:
            self.lines.add((path, line))
            self.job.record(ScalerStepped(path=path, line=line))
        return path, line

    def _repeated(self, optimizer: Any) -> None:
        """Steps of one optimizer with no update in between: of one scaler they raise, of ever new ones they do not."""
        steps = self.since.steps[id(optimizer)] = self.since.steps.get(id(optimizer), 0) + 1
        if steps >= _RENEWED:
            path, line = self.job.caller()
            self.tally.tell(ScalerRenewed(steps=steps, path=path, line=line))

    def update(self, original: Any) -> Any:
        def updating(scaler: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                result = original(scaler, *args, **kwargs)
            except (AssertionError, RuntimeError) as error:
                self._raised("update", error, None)
                raise
            if scaler.is_enabled():
                self.since = _Since()
            return result

        return updating

    def stepping(self, optimizer: Any) -> None:
        """A step that no scaler takes, on gradients that are scaled and that nobody has touched since."""
        self.past = None
        if not self.book.on or self.job.scaling.scaler is not None:
            return
        filled = self.book.of(optimizer)
        filled.check()
        self.since.direct += 1
        scaled = bool(filled.parts) and all(part == "scaled" for part, _ in filled.parts)
        if scaled and not filled.edited and not filled.unscaled:
            path, line = self.job.caller()
            name = type(optimizer).__name__
            self.past = ScalerBypassed(how="step", optimizer=name, path=path, line=line, scale=None)

    def stepped(self, optimizer: Any) -> None:
        filled = self.book.of(optimizer) if self.book.on else None
        if filled is None:
            return
        past, self.past = self.past, None
        if past is not None:
            filled.check()  # an optimizer that unscales by itself edits the gradients in its step
            if not filled.edited:
                past.scale = self._scale()
                self.tally.tell(past)
        self._ended(filled)

    def skipped(self, optimizer: Any, _scaler: Any) -> None:
        self._ended(self.book.of(optimizer))

    def _ended(self, filled: Filled) -> None:
        filled.clear()
        filled.accept()
        self.scaled.clear()

    def _plain(self, optimizer: Any, filled: Filled) -> None:
        """A scaler is about to divide gradients that nothing has multiplied, or not in all of their passes."""
        kinds = [part for part, _ in filled.parts]
        mixed = "scaled" in kinds
        # what was added after unscale_ needs no scale any more
        if filled.edited or "plain" not in kinds or "unknown" in kinds or (mixed and filled.unscaled):
            return
        path, line = next(place for part, place in reversed(filled.parts) if part == "plain")
        name, scale = type(optimizer).__name__, self._scale()
        self.tally.tell(ScalerBypassed(how="backward", optimizer=name, path=path, line=line, mixed=mixed, scale=scale))

    def _scale(self) -> float | None:
        """The scale as last read, which on a device is some steps old; None before the first update."""
        return self.job.clock.scale

    def _raised(self, call: str, error: Exception, filled: Filled | None) -> None:
        """The scaler refuses a call, and the script may hide it."""
        path, line = self.job.caller()
        since, added = self.since, filled is not None and 0 < filled.unscaled < len(filled.parts)
        event = ScalerRaised(
            call=call, error=type(error).__name__, message=str(error)[:200], path=path, line=line,
            stepped=since.stepped, direct=since.direct, asked=since.asked, backwards=since.backwards,
            whole=since.whole, added=added,
        )  # fmt: skip
        self.tally.tell(event, call, path, line)


class _Since:
    """What has happened since the scaler's last update. whole: all of it was seen."""

    def __init__(self, *, whole: bool = True) -> None:
        self.whole = whole
        self.asked = self.direct = self.backwards = 0
        self.stepped: tuple[str, int] = ("", 0)
        self.steps: dict[int, int] = {}


def _made_by(outputs: Any) -> Iterator[Any]:
    """The nodes that made the tensors in OUTPUTS, as far as it is a tensor, a list or a tuple."""
    for each in outputs if isinstance(outputs, (list, tuple)) else (outputs,):
        if isinstance(each, (list, tuple)):
            yield from _made_by(each)
        elif getattr(each, "grad_fn", None) is not None:
            yield each.grad_fn
