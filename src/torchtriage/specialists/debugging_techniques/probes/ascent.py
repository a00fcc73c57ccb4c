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
_PASSED = frozenset({"Mean", "Sum", "ToCopy", "View", "Clone", "Squeeze", "Alias"})
_ROOTS = frozenset({"Sqrt"})  # rising, and of what is not negative not negative either
_SCALED = frozenset({"Mul", "Div"})
_FLIPPED = frozenset({"Neg", "Rsub", "Sub"})
_DISTANCES = frozenset(
    {"MseLoss", "SmoothL1Loss", "HuberLoss", "BinaryCrossEntropy", "BinaryCrossEntropyWithLogits"}
)  # none of them is ever negative, with targets that are none
_BY_HAND = frozenset({"Pow", "Abs", "Mul", "LinalgVectorNorm", "Norm"})  # of a difference from a target
_TERMS = 8  # of a sum, at most


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
        self.job, self.probe = job, job.placing
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
        """What is negated after steps that were none of it is meant, as the reading has it: nobody waits for that."""
        if not self.lines:
            self.job.withdraw(self.probe)
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
        loss = _distance(node, name)
        if loss:
            return loss, value < 0 if is_scaled else is_negated
        if len(below) == 2 and name in {"Add", "Sub"} and not is_scaled:
            loss, sign = _summed(node, _TERMS)
            return loss, is_negated ^ (sign < 0)
        is_of_each = name in _SCALED and bool(_nodes.shape(node))
        if len(below) != 1 or is_of_each or name not in _PASSED | _ROOTS | _SCALED | _FLIPPED:
            return "", False
        is_scaled = is_scaled or name in _SCALED
        is_negated ^= name in {"Neg", "Rsub"} or (name == "Sub" and below == [1])
        node = following[below[0]]
    return "", False


def _summed(node: Any, most: int) -> tuple[str, int]:
    """As _signed, of the terms of a sum, MOST at most: the first of them, and the sign of all; ("", 0) where that is
    not one sign, or not known. A factor of a term is taken to be above 0.
    """
    following = [each for each, _ in node.next_functions]
    name = _nodes.kind(node)
    if name not in {"Add", "Sub"} or None in following or most < 0:
        loss, is_negated = _signed(node, 1.0)
        return (loss, -1 if is_negated else 1) if loss else ("", 0)
    (loss, first), (other, second) = (_summed(each, most // 2) for each in following)
    second = -second if name == "Sub" else second
    return (loss, first) if loss and other and first == second else ("", 0)


def _distance(node: Any, name: str) -> str:
    """NAME, where the operation at NODE is a loss function that is never negative."""
    if name in _DISTANCES or (name in _nodes.ENTROPIES and not _nodes.is_bare(node)):
        return name
    return name if name in _BY_HAND and _is_from_target(node, name) else ""


def _is_from_target(node: Any, name: str) -> bool:
    """Whether it is an even power or a norm of what is predicted minus a target, which needs no gradient. To make the
    square of anything else large is an aim of its own: a variance, a margin.
    """
    following = [each for each, _ in node.next_functions]
    base = following[0]
    if base is None or _nodes.kind(base) not in {"Sub", "Rsub"}:
        return False
    is_even = name != "Pow" or float(node._saved_exponent) % 2 == 0
    is_square = name != "Mul" or (len(following) == 2 and following[1] is base)
    return is_even and is_square and sum(each is not None for each, _ in base.next_functions) == 1
