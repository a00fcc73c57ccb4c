"""Watches root modules: the outermost modules with parameters that the job calls.

Calls are seen by replacing `__call__` of the root's class. Hooks on the instance would be copied and pickled with the
model, and global hooks make a compiled module warn. To the compiler `compiling()` is a constant: asked first, it keeps
all else of ours out of graphs and guards.

Most passes of a training are alike: in training mode, with gradients, over a batch as large as the last one, and a
backward comes soon. What is not so, an evaluation above all, is told as `aside`, so that whoever looks for it alone
costs the other passes nothing.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from ..watch import patching
from .compiler import skip_own_code

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..job import Job

ODD = 4  # passes with gradients in a row, without a backward, from which the next ones are told as aside
SEEKING = 3  # steps during which any module may turn out to be a root


def place(job: Job) -> None:
    """Finds roots in the first steps, and again when a step had a backward pass but no root; times their calls."""
    import torch

    job.compiling = torch.compiler.is_compiling
    job.modes = getattr(torch._C, "_len_torch_dispatch_stack", int)
    job.profiles = torch.autograd._profiler_enabled  # pyright: ignore  # public in all but its name
    watch = Watch(job, torch.nn.Module)
    watch.seek()
    job.undo(watch.rest)
    job.undo(patching.replace(torch, "compile", watch.resting))
    job.listen(watch.iterated)


class Watch:
    """Adopts the classes of roots. While a root runs, torch's own `Module.__call__` stands where it always stood."""

    def __init__(self, job: Job, module: type) -> None:
        import torch

        self.job, self.module, self.compiling = job, module, job.compiling
        self.with_gradients, self.tensor = torch.is_grad_enabled, torch.Tensor
        self.transformed = _transformed(torch)
        self.inside = False
        self.wanted = SEEKING
        self._adopted: set[type] = set()
        self._sizes: dict[int, int] = {}  # of batches, by root
        self._back: Callable[[], None] | None = None

    def seek(self) -> None:
        """From now on, any module that is called may be a root."""
        if self._back is None and self.wanted and not self.inside and not self.job.left:
            self._back = patching.replace(self.module, "__call__", self._sought)

    def rest(self) -> None:
        """Puts torch's own `Module.__call__` back."""
        if self._back is not None:
            self._back()
            self._back = None

    def iterated(self, _step: int) -> None:
        """Seeks for the first steps, and for one more when something learned that is no known root."""
        ended = self.job.clock.before
        if ended["forwards"] and not self.wanted:
            return
        self.wanted = max(self.wanted - 1, int(ended["backwards"] > 0 and not ended["forwards"]))
        if self.wanted:
            self.seek()
        elif self._back is not None:
            self.rest()

    def resting(self, original: Any) -> Any:
        """torch.compile takes hold of `Module.__call__`: it must get torch's own."""

        @functools.wraps(original)
        def compile(*args: Any, **kwargs: Any) -> Any:  # noqa: A001 - its name in torch
            self.rest()
            try:
                return original(*args, **kwargs)
            finally:
                self.seek()
                if not self.job.left:
                    self.job.safely(skip_own_code)

        return compile

    def _sought(self, original: Any) -> Any:
        compiling = self.compiling

        @functools.wraps(original)
        def __call__(module: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807 - it is one
            if compiling() or self.job.idle or self.inside or not self._is_root(module):
                return original(module, *args, **kwargs)
            return self._run(module, original, args, kwargs)

        return __call__

    def _adopt(self, kind: Any) -> None:
        """Replaces `__call__` of a root's class; where it was inherited, it is looked up anew at every call, since
        others (torch.fx) replace it too.
        """
        if kind in self._adopted:
            return
        self._adopted.add(kind)
        compiling, inherited, rest = self.compiling, "__call__" not in vars(kind), self.job.rest

        def adopted(original: Any) -> Any:
            @functools.wraps(original)
            def __call__(module: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807 - it is one
                above: Any = super(kind, type(module))
                call = above.__call__ if inherited else original
                if compiling():
                    return call(module, *args, **kwargs)
                if rest.on and self._rests(module):
                    return self._pass(module, call, args, kwargs)
                if self.job.idle or self.inside or not self._is_root(module):
                    return call(module, *args, **kwargs)
                return self._run(module, call, args, kwargs)

            return __call__

        self.job.undo(patching.replace(kind, "__call__", adopted))

    def _is_root(self, module: Any) -> bool:
        """Called from outside all other roots, and with something to train: a loss without parameters is none."""
        if module in self.job.roots:
            return True
        if not any(True for _ in module.parameters()):
            return False
        self.job.roots.add(module)
        self._adopt(type(module))
        return True

    def _resized(self, module: Any, args: tuple[Any, ...]) -> bool:
        """Whether the batch is of another size than the last one that the root got in training mode."""
        first: Any = args[0] if args else None
        if type(first) is not self.tensor or first.is_nested or not first.dim():
            return False
        size = first.size(0)
        before = self._sizes.get(id(module), size)
        self._sizes[id(module)] = size
        return bool(size != before)

    def _run(self, module: Any, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        job, clock = self.job, self.job.clock
        self.inside = True
        if self._back is not None:
            self.rest()
        if not clock.settled:
            job.safely(clock.settle)
        overhead = clock.enter()
        learns = self.with_gradients()
        told = not self.transformed()  # within torch.func tensors have no numbers that one could look at
        aside = told and (not (learns and module.training) or self._resized(module, args) or clock.row >= ODD)
        job.learning = learns
        if job.rest.on and learns and told:
            job.rest.keep(module, args, kwargs)
        if told:
            job.fire("forward", module, args, kwargs)
        if aside:
            job.fire("aside", module, args, kwargs)
        clock.leave(overhead, "probes")
        entered = clock.enter()
        try:
            output = self._call(module, call, args, kwargs) if learns else call(module, *args, **kwargs)
        finally:
            clock.leave(entered, "forward")
            overhead = clock.enter()
            self.inside = job.learning = False
            if self.wanted:
                self.seek()
        clock.counts["forwards"] += 1
        clock.row += learns
        if told:
            job.fire("forwarded", module, output)
        if aside:
            job.fire("asided", module, output)
        clock.leave(overhead, "probes")
        if clock.boundary != "optimizer":
            job.safely(clock.passed, "forward")
        return output

    def _call(self, module: Any, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """In a pass with gradients: what it raises may be hidden by an `except`."""
        try:
            return call(module, *args, **kwargs)
        except Exception as error:
            self.job.safely(self.job.failures.note, "forward", error)
            self.job.fire("failed", "forward", error)
            raise

    def _rests(self, module: Any) -> bool:
        """Whether, in a step that rests, this is a pass like any other of the training."""
        return (
            module.training
            and not self.inside
            and module in self.job.roots
            and self.with_gradients()
            and self.job.clock.row < ODD
            and not self.job.idle
            and not self.transformed()
        )

    def _pass(self, module: Any, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """In a step that rests."""
        job, clock = self.job, self.job.clock
        job.rest.keep(module, args, kwargs)
        self.inside = job.learning = True
        try:
            output = call(module, *args, **kwargs)
        finally:
            self.inside = job.learning = False
        clock.counts["forwards"] += 1
        clock.row += 1
        return output


def _transformed(torch: Any) -> Callable[[], bool]:
    """What tells whether a transform of torch.func is under way; never, where torch has no such name.

    Not peek_interpreter_stack, which tells the same: once it has been called, each graph that a job keeps takes a third
    more memory (torch 2.13, three linear layers with ReLU).
    """
    active: Callable[[], bool] = getattr(torch._C, "_are_functorch_transforms_active", bool)
    return active
