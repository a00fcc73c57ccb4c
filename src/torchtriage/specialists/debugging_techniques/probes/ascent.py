"""What a run writes down about losses whose negative is differentiated: the training makes them as large as it can."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from . import _nodes
from .events import Ascent

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

_KEPT = 8  # values at the start and at the end
_DEPTH = 8  # operations between the root and the loss function
_LINES = 8  # places that differentiate
_FEW = 4  # parameters of an optimizer that are looked for in the models
_PASSED = frozenset({"Mean", "ToCopy", "View", "Clone", "Squeeze", "Alias"})
_SCALED = frozenset({"Mul", "Div"})
_FLIPPED = frozenset({"Neg", "Rsub", "Sub"})
_DISTANCES = frozenset(
    {"MseLoss", "SmoothL1Loss", "HuberLoss", "BinaryCrossEntropy", "BinaryCrossEntropyWithLogits"}
)  # none of them is ever negative, with targets that are none


def ascents(job: Job) -> None:
    """Backward passes from minus a cross entropy or a distance, by line; and how optimizers take turns meanwhile."""
    job.orderly()
    watch = _Ascents(job)
    job.listen(watch.backward, watch.stepped, watch.ending)


class _Line:
    """A place that differentiates: the values of the loss whose negative it was, by what loss that is."""

    def __init__(self, before: int) -> None:
        self.loss, self.passes, self.before = "", 0, before
        self.first: list[float] = []
        self.last: deque[float] = deque(maxlen=_KEPT)


class _Ascents:
    def __init__(self, job: Job) -> None:
        self.job = job
        self.lines: dict[tuple[str, int], _Line] = {}
        self.plain: set[tuple[str, int]] = set()  # places that differentiate a loss as it is, too
        self.of = self.steps = self.turns = 0
        self.latest: int | None = None  # the optimizer that stepped last, by identity
        self.owned = False  # some of what they have moved are parameters of a model

    def backward(self, roots: Any) -> None:
        self.of += 1
        value = self.job.loss
        if len(roots) != 1 or value is None:
            return
        loss, is_negated = _signed(roots[0].grad_fn, value)
        if not loss:
            return
        place = self.job.caller()
        if not is_negated:
            self.plain.add(place)
        if place in self.plain:
            return  # a factor of either sign is a reward, or an advantage
        if place not in self.lines and len(self.lines) >= _LINES:
            return
        line = self.lines.setdefault(place, _Line(self.steps))
        line.loss, line.passes = loss, line.passes + 1
        if len(line.first) < _KEPT:
            line.first.append(-value)
        line.last.append(-value)

    def stepped(self, optimizer: Any) -> None:
        self.steps += 1
        self.turns += self.latest not in (None, id(optimizer))
        self.latest = id(optimizer)
        if not self.owned:
            first = optimizer.param_groups[0]["params"]
            self.owned = any(self.job.module_name(each) is not None for each in first[:_FEW])

    def ending(self) -> None:
        told = {place: line for place, line in self.lines.items() if place not in self.plain}
        for (path, number), line in told.items():
            self.job.record(
                Ascent(
                    loss=line.loss,
                    path=path,
                    line=number,
                    passes=line.passes,
                    of=self.of,
                    first=line.first,
                    last=list(line.last),
                    turns=self.turns,
                    steps=self.steps,
                    before=line.before,
                    owned=self.owned,
                )
            )


def _signed(node: Any, value: float) -> tuple[str, bool]:
    """The loss function that a graph from NODE, which gave VALUE, computes and nothing else, and whether with a minus;
    "" for any other. The sign of a number that it was multiplied with is that of VALUE, for the function is never
    negative; the losses of single samples may have a factor each, as in a policy gradient: of these nothing is said.
    """
    is_negated, is_scaled = False, False
    for _ in range(_DEPTH):
        following = [each for each, _ in node.next_functions] if node is not None else []
        below = [number for number, each in enumerate(following) if each is not None]
        name = _nodes.kind(node) if node is not None else ""
        if name in _DISTANCES or (name in _nodes.ENTROPIES and not _nodes.is_bare(node)):
            if is_scaled:
                return ("", False) if _nodes.shape(node) else (name, value < 0)
            return name, is_negated
        if len(below) != 1 or name not in _PASSED | _SCALED | _FLIPPED:
            return "", False
        is_scaled = is_scaled or name in _SCALED
        is_negated ^= name in {"Neg", "Rsub"} or (name == "Sub" and below == [1])
        node = following[below[0]]
    return "", False
