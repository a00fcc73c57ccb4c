"""One process under fingerprints."""

from __future__ import annotations

import sys
import zlib
from _thread import get_ident
from itertools import islice
from typing import TYPE_CHECKING, Any

from torchtriage.examine.run.job.events import ProbeOff

from ._closer import Closer
from ._digest import mark, prepare
from ._named import Names
from ._sequence import Sequence
from ._states import hyper, states
from .events import Conditions, Elsewhere

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torchtriage.examine.run.job.job import Job

_LEAVES = 64  # tensors of one output or batch
_DEPTH = 5  # of nested tuples, lists and dicts
_WALKS = 3  # backward passes whose graph is walked for leaves, of a training that has no optimizer


class Watch:
    """What is noted, and when.

    thread: the one that trains. stack: the modules that run now. propagating: a backward pass is under way. off: our
    own fault has ended the noting.
    """

    def __init__(self, job: Job, wanted: dict[str, Any]) -> None:
        import torch

        prepare()
        self.job, self.tensor = job, torch.Tensor
        self.compiling: Callable[[], bool] = torch.compiler.is_compiling
        self.with_gradients: Callable[[], bool] = torch.is_grad_enabled
        self.lazy: Callable[[Any], bool] = torch.nn.parameter.is_lazy  # parameters that are not made yet
        self.stack: list[Any] = []
        self.thread, self.off, self.propagating = get_ident(), False, False
        self.names = Names()
        self.sequence = Sequence(job.writer.folder, job.writer.ranked)
        self.closer = Closer(self, wanted)
        self.early: Any = getattr(sys.modules.get("_torchtriage_early"), "asking", None)
        self._optimizers: dict[int, int] = {}
        self._stepping: Any = None
        self._hooked: dict[int, Any] = {}  # parameters, with our hook on them
        self._fired: set[int] = set()
        self._told: set[int] = set()  # what has had its first mark
        self._loose: list[Any] = []  # leaves of graphs, where there is no optimizer
        self._workers, self._elsewhere = 0, False
        self.calls = 0  # outermost ones in this turn
        self._passes, self._walked = 0, 0  # backward passes since the last turn, and whose graph was walked
        self._last: tuple[Any, int, Any] = (None, 0, None)

    def idle(self) -> bool:
        return self.off or get_ident() != self.thread

    @property
    def updating(self) -> bool:
        return self._stepping is not None

    def idle_but(self, expected: bool) -> bool:
        """Whether nothing is noted in this thread, which may be another where that is EXPECTED: autograd's."""
        return self.off or (not expected and get_ident() != self.thread)

    def safely(self, function: Callable[..., None], *arguments: Any) -> None:
        """Our fault must not become the job's: it ends the noting, and is written down."""
        if self.off:
            return
        try:
            function(*arguments)
        except Exception as error:  # noqa: BLE001
            self.off = True
            self.job.record(ProbeOff(probe="repeat/prints", why=f"{type(error).__name__}: {error}"[:500]))

    def look_closer(self) -> None:
        self.closer.turned(0)

    def entering(self, module: Any, args: Any, kwargs: Any) -> None:
        """An outermost call: what it is given."""
        self._settle()
        self._starting()
        self._last = (None, 0, None)
        name = self.names.find(module)
        self.calls += 1
        self._begun()
        if self.closer.held:
            self._hold()
        for number, leaf in enumerate(self._leaves((args, kwargs))):
            if isinstance(leaf, self.tensor):
                kind = "mid" if leaf.requires_grad else "in"
                self.sequence.add(kind, f"{name}#{number}", mark(leaf))
            else:
                self.sequence.add("in", f"{name}#{number}", leaf)

    def gave(self, module: Any, output: Any) -> None:
        """The end of any module's call: what it gives. One that hands on what another has given has its mark."""
        kind = "out" if self.with_gradients() else "aside"
        name = self.names.find(module)
        last, version, known = self._last
        if last is not None and output is last and version == _version(output):
            self.sequence.add(kind, name, known)
        elif type(output) is self.tensor:
            found = mark(output)
            self._last = output, _version(output), found
            self.sequence.add(kind, name, found)
        else:
            for number, leaf in enumerate(self._leaves(output)):
                found = mark(leaf) if isinstance(leaf, self.tensor) else leaf
                self.sequence.add(kind, f"{name}#{number}" if number else name, found)
        if self.closer.open:
            self.closer.made(name, output)

    def got(self, batch: Any, workers: int) -> None:
        """A batch of a loader with so many WORKERS."""
        if workers and not self._workers:
            self._workers = workers
            self.job.record(Conditions(workers=workers))
        self._settle()
        self._starting()
        leaves = list(self._leaves(batch))
        for number, leaf in enumerate(leaves):
            found = mark(leaf) if isinstance(leaf, self.tensor) else leaf
            self.sequence.add("batch", str(number), found)
        if self.closer.rows:
            self.closer.row(leaves)

    def losing(self, roots: Any) -> None:
        """A backward pass begins."""
        self._last = (None, 0, None)
        if not self.sequence.turn and not self.idle_elsewhere():
            self.thread = get_ident()
        if self.idle():
            return
        if not self.names.roots and self._passes:
            self._settle()
        roots = [roots] if isinstance(roots, self.tensor) else list(roots) if isinstance(roots, (list, tuple)) else []
        for number, root in enumerate(roots):
            self.sequence.add("loss", str(number), mark(root))
        self._passes += 1
        if not self._optimizers and self._walked < _WALKS:
            self._walked += 1
            self._follow([each for each in self.job.leaves(roots) if id(each) not in self._hooked])
        if self.closer.open:
            self.closer.made("", roots)

    def idle_elsewhere(self) -> bool:
        """Whether another thread has noted anything yet."""
        return self.thread != get_ident() and not self.sequence.empty

    def accumulated(self, parameter: Any) -> None:
        """The gradient of a leaf has come, in a thread of autograd's on a device."""
        if self.off or not self.propagating or self.compiling():
            return
        self._fired.add(id(parameter))
        self.safely(self._gradient, "grad", parameter)

    def begin(self, optimizer: Any) -> None:
        """An optimizer is about to update."""
        if self.idle() and not self.off and not self._elsewhere and not self.compiling():
            self._elsewhere = True
            self.job.record(Elsewhere())
        if self.idle() or self.compiling() or self._stepping is not None:
            return
        self._stepping = optimizer
        number = self._optimizers.setdefault(id(optimizer), len(self._optimizers))
        self.sequence.add("hyper", f"optimizer {number}", hyper(optimizer))
        parameters = _of(optimizer)
        self._follow(parameters)
        together = _in_a_group()
        for each in parameters:
            if each.grad is not None and (together or id(each) not in self._fired):
                self._gradient("reduced" if together else "grad", each)

    def end(self, optimizer: Any) -> None:
        """It has updated: a turn is over."""
        if self._stepping is not optimizer:
            return
        self._stepping = None
        self._updated([each for each in _of(optimizer) if each.grad is not None])
        self._close(self._optimizers[id(optimizer)])

    def ending(self) -> None:
        """What has been noted since the last turn, too."""
        if not self.off and get_ident() == self.thread:
            self.safely(self._settle)
            if not self.sequence.empty:
                self.safely(self._close, -2)
            self.sequence.line("end")
            self.sequence.flush()

    def forked(self) -> None:
        """A child is another process: a worker, or a rank of its own, which then trains by itself."""
        self.sequence.forked()
        self.thread, self.off = get_ident(), self.off or bool(self._optimizers)
        self.closer.forked()

    def name(self, parameter: Any) -> str:
        found = self.names.of(parameter)
        if found is None:
            place = list(self._hooked).index(id(parameter)) if id(parameter) in self._hooked else len(self._hooked)
            return f"(parameter {place})"
        return found

    def _starting(self) -> None:
        """The states with which the first step begins."""
        if not self.sequence.turn and self.sequence.empty:
            self.sequence.line("begin", rng=states())

    def _begun(self) -> None:
        """The first marks of all parameters and buffers of models that are new."""
        for root in self.names.roots:
            if id(root) in self._told:
                continue
            self._told.add(id(root))
            parameters = list(root.parameters())
            for each in parameters:
                self._first(each)
            for each in root.buffers():
                self._first(each)
            self._follow(parameters)

    def _first(self, each: Any) -> None:
        if id(each) not in self._told:
            self._told.add(id(each))
            self.sequence.add("init", self.name(each), _guarded(each))

    def _hold(self) -> None:
        """The parameters as the step finds them: somebody may have written to them since the update."""
        if self._passes or self._fired or not self.closer.fresh:
            return
        self.closer.fresh = False
        for root in self.names.roots:
            for each in root.parameters():
                self.sequence.add("held", self.name(each), _guarded(each))

    def _follow(self, parameters: list[Any]) -> None:
        for each in parameters:
            if id(each) in self._hooked or not each.requires_grad or not each.is_leaf or self.lazy(each):
                continue
            self._hooked[id(each)] = each
            self._first(each)
            if not self._optimizers:
                self._loose.append(each)
            each.register_post_accumulate_grad_hook(self.accumulated)

    def _gradient(self, kind: str, parameter: Any) -> None:
        if parameter.grad is not None:
            self.sequence.add(kind, self.name(parameter), _guarded(parameter.grad))

    def _updated(self, parameters: list[Any]) -> None:
        for each in parameters:
            self.sequence.add("param", self.name(each), _guarded(each))
        for root in self.names.roots:
            for each in root.buffers():
                self.sequence.add("buffer", self.name(each), _guarded(each))

    def _settle(self) -> None:
        """Where no optimizer ever steps, what follows a backward pass begins a new step."""
        if self._passes and not self._optimizers:
            self._updated(self._loose)
            self._close(-1)

    def _close(self, by: int) -> None:
        self._fired.clear()
        self._passes, self.calls, self._last = 0, 0, (None, 0, None)
        self.closer.close()
        self.sequence.close(by, rng=states())
        self.closer.turned(self.sequence.turn)
        if self.early is not None:
            self.early.turn = self.sequence.turn

    def _leaves(self, value: Any) -> Iterator[Any]:
        """Tensors in a nest, and marks of plain numbers; texts, names and times of the files among them are nothing."""
        return islice(_walk(value, self.tensor, 0), _LEAVES)


def _walk(value: Any, tensor: type, depth: int) -> Iterator[Any]:
    if isinstance(value, tensor):
        yield value
    elif isinstance(value, (bool, int, float)):
        yield zlib.crc32(repr(value).encode())
    elif depth < _DEPTH:
        if isinstance(value, dict):
            value = list(value.values())
        elif hasattr(value, "__dict__") and not isinstance(value, (type, tuple, list)) and not callable(value):
            value = list(vars(value).values())
        if isinstance(value, (list, tuple)):
            for each in value[:_LEAVES]:
                yield from _walk(each, tensor, depth + 1)


def _guarded(each: Any) -> Any:
    """The mark, None for parameters that are not made yet."""
    try:
        return mark(each)
    except (RuntimeError, ValueError, NotImplementedError):
        return None


def _version(tensor: Any) -> int:
    """How often a tensor has been written to; those of inference mode do not tell."""
    return 0 if tensor is None or tensor.is_inference() else int(tensor._version)


def _of(optimizer: Any) -> list[Any]:
    return [each for group in optimizer.param_groups for each in group["params"]]


def _in_a_group() -> bool:
    from torch import distributed

    return bool(distributed.is_available() and distributed.is_initialized())
