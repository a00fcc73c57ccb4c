"""What a run writes down about gradients that several backward passes have filled when an optimizer steps."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from . import losses
from ._rates import is_divided, remarks
from .events import Accumulated
from .filled import Book, sample

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

    from .filled import Filled
    from .losses import Memory

    _Spot = tuple[Memory | None, bytes]

_TURNS = 6  # of an optimizer that are followed: a loop accumulates always or never
_WALKS = 96  # graphs whose parameters are listed
_FRAMES = 3  # of the user's code that tell one place that differentiates from another


def accumulation(job: Job) -> None:
    """For the first turns of each optimizer: how alike its backward passes are, and whether their losses are means."""
    import torch

    job.sampled()
    watch = _Accumulation(job)
    job.wrap(torch.amp.GradScaler, "scale", watch.scale)
    job.listen(
        watch.batch,
        watch.forward,
        watch.forwarded,
        watch.backward,
        watch.backwarded,
        watch.stepping,
        watch.stepped,
        watch.skipped,
        watch.watching,
    )


class _Accumulation:
    """The passes since the last turn, and the batches and calls of the model that they came from."""

    def __init__(self, job: Job) -> None:
        import weakref

        import torch

        self.job, self.with_gradients = job, torch.is_grad_enabled
        self.probe = job.placing
        self.book = Book(job)
        self.turns: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self.walks = _WALKS
        self.unscaled: dict[int, tuple[Any, Any]] = {}  # by a scaled node: it, and the node of the loss itself
        self.part: _Part | None = None
        self.batches: list[_Batch] = []  # since the last turn
        self.begun = 0  # length of the first input of the first call since the last backward
        self.calls: list[_Spot] = []  # the first input of each call since the last backward
        self.delivered: set[Memory | None] = set()  # where the tensors of the last batch lie
        self.within = False  # whether the first of them went on from an earlier call
        self.outputs: set[Memory | None] = set()  # where what the last call gave lies
        self.fed_back = False
        self.divided: dict[tuple[Any, ...], bool | None] = {}  # by rate, passes and files
        self.roots: dict[tuple[str, int], int] = {}  # by the line of a backward: that which made its loss

    def scale(self, original: Any) -> Any:
        def scaling(scaler: Any, outputs: Any) -> Any:
            result = original(scaler, outputs)
            node = getattr(result, "grad_fn", None)
            if node is not None and result is not outputs:
                self.unscaled[id(node)] = (node, getattr(outputs, "grad_fn", None))
            return result

        return scaling

    def watching(self) -> None:
        """What was followed is told; a later window begins in the middle of nothing that is known."""
        self.job.withdraw(self.probe)

    def batch(self, loader: Any, batch: Any) -> None:
        tensors = _tensors([*batch.values()] if isinstance(batch, dict) else batch)
        self.batches.append(_Batch(id(loader), _length(next(iter(tensors), None))))
        self.delivered = {losses.memory(each) for each in tensors}

    def forward(self, _module: Any, args: Any, kwargs: Any) -> None:
        """A pass without gradients is an evaluation between the micro-batches, or a teacher: no part of the loss."""
        learns = self.with_gradients()
        for batch in self.batches[-1:]:
            batch.learned, batch.evaluated = batch.learned or learns, batch.evaluated or not learns
        if not learns:
            return
        first, *others = [*args, *kwargs.values()] or [None]
        self.fed_back = self.fed_back or bool(self.outputs.intersection(_places(others)))
        begins = next(iter(_tensors(first)), None)
        passed_on = begins is not None and self._passed_on(begins)
        if not self.calls:
            self.within = passed_on
            self.begun = _length(begins)
        if not (self.calls and passed_on):
            self.calls.append(_spot(begins))

    def _passed_on(self, tensor: Any) -> bool:
        """Whether an earlier call gave TENSOR, or something TENSOR was made from: a model in parts."""
        return tensor.grad_fn is not None or losses.memory(tensor) in self.outputs

    def forwarded(self, _module: Any, output: Any) -> None:
        if not self.with_gradients():
            return
        self.outputs = {*_places(output)}

    def backward(self, roots: Any) -> None:
        self.book.check()
        top = getattr(roots[0], "grad_fn", None) if len(roots) == 1 else None
        top = self.unscaled.pop(id(top), (None, top))[1]
        self.unscaled.clear()
        kind, target = losses.undivided(top)
        leaves = None
        if kind and self.walks:
            self.walks -= 1
            leaves = frozenset(id(n.variable) for n in losses.nodes(top, losses.NODES) if hasattr(n, "variable"))
        self.part = _Part(kind, target, leaves, self.calls, within=self.within)
        self.part.length = self.begun
        self.part.delivered = {place for place, _ in self.calls} <= self.delivered
        self.calls = []

    def backwarded(self, _roots: Any) -> None:
        part = self.part
        if part is not None:
            part.places = self.job.callers(_FRAMES)
            frame, where = self.job.frame(), part.places[0] if part.places else ("", 0)
            if where not in self.roots:
                self.roots[where] = self.job.written.root_of(frame) if frame is not None else 0
            for filled in self.book:
                filled.backwarded(lambda: part)

    def stepping(self, optimizer: Any) -> None:
        self.book.of(optimizer).check()

    def stepped(self, optimizer: Any) -> None:
        self._turn(optimizer)

    def skipped(self, optimizer: Any, _scaler: Any) -> None:
        self._turn(optimizer)

    def _turn(self, optimizer: Any) -> None:
        filled = self.book.of(optimizer)
        self.turns[optimizer] = self.turns.get(optimizer, 0) + 1
        if len(filled.parts) > 1:
            self._tell(optimizer, filled)
        filled.clear()
        filled.accept()
        self.batches, self.fed_back = [], False
        if all(turns >= _TURNS for turns in self.turns.values()):
            self.job.withdraw(self.probe)

    def _tell(self, optimizer: Any, filled: Filled) -> None:
        parts: list[_Part] = filled.parts
        rate = _number(optimizer.param_groups[0].get("initial_lr", optimizer.param_groups[0].get("lr")))
        path, line = next(iter(parts[0].places), ("", 0))
        pairs = list(pairwise(parts))
        batches = [each for each in self.batches if each.learned or not each.evaluated]
        event = Accumulated(
            optimizer=type(optimizer).__name__,
            rate=rate,
            divided=self._divides(optimizer, rate, len(parts), path),
            passes=len(parts),
            kinds=sorted({part.kind for part in parts}),
            places=len({tuple(part.places) for part in parts}),
            reached=len({part.leaves for part in parts if part.leaves is not None}),
            calls=[len(part.calls) for part in parts],
            batches=len(batches),
            loaders=len({each.loader for each in batches}),
            length=batches[-1].length if batches else 0,
            lengths=[part.length for part in parts],
            delivered=all(part.delivered for part in parts),
            again=sum(a.is_again(b) for a, b in pairs),
            fed_back=self.fed_back,
            edited=filled.edited,
            path=path,
            line=line,
            root=self.roots.get((path, line), 0),
        )
        self.job.record(event)

    def _divides(self, optimizer: Any, rate: float | None, passes: int, path: str) -> bool | None:
        """Whether a file that builds the optimizer, or runs the backward, divides the rate; None where none can be
        read.
        """
        written = self.job.written
        files = {file for file in (self.job.built.at(optimizer)[0], path) if file}
        key = (rate, passes, *sorted(files))
        if key not in self.divided:
            trees = [tree for file in files if (tree := written.file_at(file)) is not None]
            lines = [line for file in files for line in written.lines_at(file)]
            meant = is_divided(trees, rate, passes, written.words) or remarks(lines, written.words)
            self.divided[key] = meant if trees else None
        return self.divided[key]


class _Batch:
    """What a loader gave, and whether a model was called on it with gradients, or without."""

    def __init__(self, loader: int, length: int) -> None:
        self.loader, self.length = loader, length
        self.learned = self.evaluated = False


class _Part:
    """One backward pass: the kind of its loss, what it was made from, and which parameters it reached."""

    def __init__(
        self, kind: str, target: Memory | None, leaves: frozenset[int] | None, calls: list[_Spot], *, within: bool
    ) -> None:
        self.kind, self.target, self.leaves, self.calls, self.within = kind, target, leaves, calls, within
        self.places: list[tuple[str, int]] = []
        self.length = 0  # of what the model was given
        self.delivered = False  # whether each call was given a tensor of the batch, as it came

    def is_again(self, other: _Part) -> bool:
        """Whether OTHER has the same targets or inputs, or goes on in this one's graph."""
        if self.target is not None and self.target == other.target:
            return True
        return self.within != other.within or bool({spot for spot in self.calls if spot[0]}.intersection(other.calls))


def _spot(tensor: Any) -> _Spot:
    """Where TENSOR lies and how it begins: what lies there a pass later may be another batch; (None, b"") for none."""
    return (None, b"") if tensor is None else (losses.memory(tensor), sample(tensor))


def _places(value: Any) -> list[Memory | None]:
    """Where the tensors in VALUE lie, as deep as tuples of tuples."""
    return [losses.memory(tensor) for tensor in _tensors(value)]


def _tensors(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [tensor for each in value[:8] for tensor in _tensors(each)]
    return [value] if hasattr(value, "data_ptr") and losses.memory(value) else []


def _length(tensor: Any) -> int:
    return int(tensor.shape[0]) if tensor is not None and tensor.dim() else 0


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None
