"""What a run writes down about formats: float16 without a scaler, bfloat16 with one, autocast that is left on."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from . import losses
from ._tally import TIMES, Tally
from .events import AutocastBackward, AutocastUnused, AutocastUsed, ScaledBfloat16, UnscaledFloat16
from .filled import Book

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

    from .filled import Filled

_WALKS = 12  # graphs that are looked through in the first window, each for a millisecond or so
_LATER = 2  # and in every later one
_FRAMES = 24  # above a module's forward in which the statement that turns autocast on is looked for
_TURN = 2  # of one turn of an optimizer: of many micro-batches one is as good as the others


def formats(job: Job) -> None:
    """The formats in the graphs of the losses that optimizers step on, and whether a scaler takes the step."""
    import torch

    job.orderly()
    watch = _Formats(job)
    job.wrap(torch.amp.GradScaler, "__init__", watch.built)
    job.listen(
        watch.forward, watch.backward, watch.backwarded, watch.stepping, watch.stepped, watch.skipped, watch.watching
    )


def regions(job: Job) -> None:
    """Backward passes that begin while autocast is on."""
    import torch

    job.orderly()
    times = 0

    def backward(roots: Any) -> None:
        nonlocal times
        kind = roots[0].device.type if roots and hasattr(roots[0], "device") else ""
        if kind not in job.accelerator.autocast():
            return
        times += 1
        if times in TIMES:
            path, line = job.caller()
            short = str(torch.get_autocast_dtype(kind)).removeprefix("torch.")
            job.record(AutocastBackward(format=short, times=times, path=path, line=line))

    job.listen(backward)


class _Formats:
    """The casts that were seen in the graphs since the last turn of each optimizer."""

    def __init__(self, job: Job) -> None:
        import weakref

        self.job = job
        self.book = Book(job)
        self.scalers: weakref.WeakKeyDictionary[Any, tuple[str, int]] = weakref.WeakKeyDictionary()
        self.walks = _WALKS
        self.turn = 0  # graphs looked through since the last turn of an optimizer
        self.region: tuple[str, int] = ("", 0)  # the statement that turned autocast on for the first of them
        self.autocast = ""  # the format of the last forward pass with gradients, for parts that are compiled
        self.effective = False  # some graph held the format of its autocast
        self.seen: _Seen | None = None  # in the graph of the pass under way
        self.tally = Tally(job)

    def built(self, original: Any) -> Any:
        def init(scaler: Any, *args: Any, **kwargs: Any) -> None:
            original(scaler, *args, **kwargs)
            self.scalers[scaler] = self.job.caller()

        return init

    def watching(self) -> None:
        self.walks = _LATER
        self.book.on = True
        self.book.forget()

    def forward(self, _module: Any, _args: Any, _kwargs: Any) -> None:
        import torch

        if self.walks and torch.is_grad_enabled():
            on = next(iter(self.job.accelerator.autocast()), None)
            self.autocast = str(torch.get_autocast_dtype(on)).removeprefix("torch.") if on else ""
            if on and not self.region[1]:
                self.region = _region(self.job)

    def backward(self, roots: Any) -> None:
        self.seen = None
        if not self.walks:
            self.book.on = False
            return
        self.book.check()
        if self.turn < _TURN and len(roots) == 1 and getattr(roots[0], "grad_fn", None) is not None:
            self.walks -= 1
            self.turn += 1
            cast, found = losses.formats(roots[0].grad_fn)
            compiled = cast.pop("compiled", [])
            if compiled and self.autocast:
                cast.setdefault(self.autocast, []).extend(compiled)
                found.add(self.autocast)
            if self.autocast:
                self.judge(roots[0].grad_fn, found)
            by_hand = losses.by_hand(roots[0].grad_fn)
            self.seen = _Seen({name: {id(each) for each in owners} for name, owners in cast.items()}, found, by_hand)

    def judge(self, root: Any, found: set[str]) -> None:
        """Whether autocast, which was on as the model ran, has shortened anything of a graph that holds its weights."""
        if self.autocast in found:
            if not self.effective and any(kind == AutocastUnused.kind for kind, *_ in self.tally.counts):
                self.job.record(AutocastUsed())
            self.effective = True
        elif not self.effective:
            owners = [each for module in self.job.roots for each in module.parameters()]
            weights = sum(each.dim() > 1 for each in owners)
            products = losses.products(root)
            if products > 1 and products * 2 >= weights and all(each.requires_grad for each in owners):
                short, (path, line) = self.autocast, self.region
                event = AutocastUnused(format=short, products=products, found=sorted(found), path=path, line=line)
                self.tally.tell(event, short)

    def backwarded(self, _roots: Any) -> None:
        if self.seen is not None:
            self.seen.place = self.job.caller()
        if self.walks:
            for filled in self.book:
                filled.backwarded(lambda: self.seen)

    def stepping(self, optimizer: Any) -> None:
        if not self.walks:
            return
        filled = self.book.of(optimizer)
        filled.check()
        scaler = self.job.scaling.scaler
        if scaler is not None and scaler.is_enabled():
            self._scaled(scaler, filled)
        else:
            self._plain(optimizer, filled, scaler)

    def stepped(self, optimizer: Any) -> None:
        if self.walks:
            self._ended(self.book.of(optimizer))

    def skipped(self, optimizer: Any, scaler: Any) -> None:
        if self.walks:
            filled = self.book.of(optimizer)
            self._scaled(scaler, filled)
            self._ended(filled)

    def _ended(self, filled: Filled) -> None:
        filled.clear()
        filled.accept()
        self.turn = 0

    def _scaled(self, scaler: Any, filled: Filled) -> None:
        """A scaler takes the step: the formats of all that it scaled."""
        found = set().union(*(seen.found for seen in filled.parts if seen))
        if "bfloat16" in found and "float16" not in found:
            path, line = self.scalers.get(scaler, ("", 0))
            self.tally.tell(ScaledBfloat16(path=path, line=line))

    def _plain(self, optimizer: Any, filled: Filled, off: Any) -> None:
        """No scaler takes the step, or one that is off: what of the optimizer's own was cast to float16."""
        parts = [seen for seen in filled.parts if seen]
        if filled.edited or any(seen.by_hand for seen in parts):
            return
        cast = set().union(*(seen.cast.get("float16", ()) for seen in parts))
        owned = {id(p) for group in optimizer.param_groups for p in group["params"]}
        if cast & owned:
            (path, line), name = parts[-1].place, type(optimizer).__name__
            built = self.scalers.get(off, ("", 0)) if off is not None else ("", 0)
            further = [
                ("the scaler that is switched off is built here", *built),
                ("autocast is turned on here", *self.region),
            ]
            event = UnscaledFloat16(
                optimizer=name, cast=len(cast & owned), of=len(owned), off=off is not None, further=further,
                path=path, line=line,
            )  # fmt: skip
            self.tally.tell(event, path, line, name)


class _Seen:
    """One graph: identities of the parameters that it casts, by format; all its formats; a scale by hand; its line."""

    def __init__(self, cast: dict[str, set[int]], found: set[str], by_hand: bool) -> None:
        self.cast, self.found, self.by_hand = cast, found, by_hand
        self.place: tuple[str, int] = ("", 0)


def _region(job: Job) -> tuple[str, int]:
    """The statement of the user's code, around the line that runs, that turned autocast on; ("", 0) for none."""
    frame = job.frame()
    for _ in range(_FRAMES):
        if frame is None:
            break
        tree = job.written.tree_of(frame.f_code) if job.path_of(frame.f_code) else None
        for node in [each for each in ast.walk(tree or ast.Pass()) if isinstance(each, ast.With)]:
            around = node.lineno <= frame.f_lineno <= (node.end_lineno or 0)
            if around and any("autocast" in ast.unparse(each.context_expr) for each in node.items):
                return str(job.path_of(frame.f_code)), node.lineno
        frame = frame.f_back
    return "", 0
