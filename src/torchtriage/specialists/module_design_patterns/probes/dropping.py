"""What a run writes down about dropouts that go on dropping while the model is in evaluation mode."""

from __future__ import annotations

import sys
import weakref
from typing import TYPE_CHECKING, Any

from .events import Dropped
from .stated import tells_no_mode

if TYPE_CHECKING:
    from types import FrameType

    from torchtriage.examine.run.job.job import Job

_PASSES = 64  # of models in evaluation mode that are looked at: a dropout that cannot tell the mode drops in each
_PLAIN = ("dropout", "dropout_", "alpha_dropout", "alpha_dropout_", "feature_dropout", "feature_dropout_")
_CALLS = 4  # of functions between a module's method and the dropout
_INNER = "module_design_patterns/dropping within"


def dropping(job: Job) -> None:
    """Functional dropouts, and dropout layers made on the spot, that drop during a pass in evaluation mode."""
    watch = _Dropping(job)
    job.listen(watch.aside, watch.asided, watch.ending)


class _Dropping:
    """Stands in the functions that drop only while a root module in evaluation mode runs."""

    def __init__(self, job: Job) -> None:
        self.job, self.probe = job, job.placing
        self.passes, self.placed, self.compiled = 0, False, False
        self.root: Any = None
        self.found: dict[tuple[str, int], Dropped] = {}
        self.layers: list[tuple[Any, Dropped]] = []  # layers, weak

    def aside(self, module: Any, _args: Any, _kwargs: Any) -> None:
        if module.training:
            return
        if not self.placed:
            self.compiled = any(map(_compiled, module.modules()))
            self.job.place(_INNER, self.put)
            self.placed = True
        self.root = weakref.ref(module)

    def forward(self, module: Any, _args: Any, _kwargs: Any) -> None:
        """The first pass in training mode takes away what was placed."""
        if module.training:
            self.job.withdraw(_INNER)
            self.placed = False

    def asided(self, _module: Any, _output: Any) -> None:
        if self.root is None:
            return
        self.root = None
        for layer, note in self.layers:
            note.passes += layer() is None  # one that is gone by now was made for this call
        self.layers.clear()
        self.passes += 1
        if self.passes >= _PASSES:
            self.ending()

    def ending(self) -> None:
        for note in self.found.values():
            if note.passes:
                self.job.record(note)
        self.job.withdraw(_INNER)
        self.job.withdraw(self.probe)

    def put(self, job: Job) -> None:
        """Wraps what the functional dropouts call, so that no name they were imported under matters."""
        import torch

        job.listen(self.forward)
        for name in _PLAIN:
            job.wrap(torch._VF, name, self.dropout)
        if not self.compiled:
            job.wrap(torch.nn.functional, "scaled_dot_product_attention", self.attention)

    def dropout(self, original: Any) -> Any:
        def drop(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            if self.root is not None and len(args) == 3 and args[2] and args[1]:
                self.dropped(float(args[1]), stated="training", position=2)
            return result

        return drop

    def attention(self, original: Any) -> Any:
        def attend(*args: Any, **kwargs: Any) -> Any:
            rate = args[4] if len(args) > 4 else kwargs.get("dropout_p", 0.0)
            if self.root is not None and rate:
                self.dropped(float(rate), stated="", position=99)
            return original(*args, **kwargs)

        return attend

    def dropped(self, rate: float, stated: str, position: int) -> None:
        """Notes a dropout, unless the call says STATED in so many words, or at that POSITION."""
        job, frame = self.job, self.job.frame()
        root = self.root()
        if frame is None or root is None:
            return
        owner, within = _owner(job, frame)
        if getattr(owner, "training", False):
            return  # a part that was put into training mode on purpose
        layer = _layer(frame)
        if layer is not None and any(each is layer for each in root.modules()):
            return
        if layer is None and not tells_no_mode(job, frame, stated, position):
            return
        path, line = job.caller()
        note = self.found.get((path, line))
        if note is None:
            note = self.found[path, line] = Dropped(
                path=path,
                line=line,
                passes=0,
                rate=rate,
                layer=layer is not None,
                attention=not stated,  # which takes no word about the mode
                module=job.module_name(owner),
                words=sorted(job.written.words(f"{type(owner).__name__} {frame.f_code.co_name}")),
                from_=(str(job.path_of(within.f_code)), within.f_lineno) if within is not frame else None,
            )
        if layer is None:
            note.passes += note.last != self.passes
            note.last = self.passes
        else:
            self.layers.append((weakref.ref(layer), note))


def _owner(job: Job, frame: FrameType) -> tuple[Any, FrameType]:
    """The module in whose method FRAME runs, or the nearest that called it there, a few calls above; and its frame."""
    import torch

    outer: FrameType | None = frame
    for _ in range(_CALLS):
        if outer is None:
            break
        owner = outer.f_locals.get("self")
        if isinstance(owner, torch.nn.Module):
            return owner, outer
        outer = job.frame(outer.f_back) if outer.f_back is not None else None
    return frame.f_locals.get("self"), frame


def _layer(frame: FrameType) -> Any:
    """The layer of torch.nn that FRAME, a frame of the user's, has called and that runs now."""
    inner: FrameType | None = sys._getframe(1)
    while inner is not None and inner is not frame:
        if inner.f_code.co_filename.replace("\\", "/").endswith("torch/nn/modules/dropout.py"):
            return inner.f_locals.get("self")
        inner = inner.f_back
    return None


def _compiled(module: Any) -> bool:
    """A compiled module would be compiled anew when a function that it calls is exchanged."""
    return hasattr(module, "_orig_mod") or getattr(module, "_compiled_call_impl", None) is not None
