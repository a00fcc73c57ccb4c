"""What a run writes down about its losses: probabilities for logits, shapes that broadcast, how many classes.

The graph of a loss tells its kind and shapes, so that a healthy job has nothing of its own replaced. Only when
something looks wrong, the functions in question are followed for one step, for the line that calls them.
"""

from __future__ import annotations

import weakref
from math import prod
from typing import TYPE_CHECKING, Any

from torchtriage.examine.run.job.events import replace

from . import _nodes
from ._data import orders, samples
from ._lines import Lines
from .events import Broadcast, Probabilities, Rectified, Samples

if TYPE_CHECKING:
    from torchtriage.examine.run.job.events import Guess
    from torchtriage.examine.run.job.job import Job

_TIMES = frozenset({3, 10, 100, 1000, 10_000})  # when something that keeps happening is written down again
_FOLLOWED = frozenset({2, 32, 128, 512, 2048})  # sightings of a classifier's loss after which one step is followed
_ATTEMPTS = 3  # to follow what is suspicious
_POINTWISE = frozenset({"MseLoss", "SmoothL1Loss", "HuberLoss"})
_DISTANCES = frozenset({"MseLoss"})
_PAIRED = {"Sub": "differences", "Mul": "products"}  # an error, or a term times its weight: what is followed
_OPAQUE = frozenset({"Div", "CompiledFunction"})
_BINARY = frozenset({"BinaryCrossEntropyWithLogits", "BinaryCrossEntropy"})
_WINDOW = 33  # steps that are watched at a suspicion, and one
_ARRIVED = 3  # steps after which what was read of a device is there


def losses(job: Job) -> None:
    """Losses that are given probabilities, or a prediction and a target whose shapes broadcast."""
    watch = _Losses(job)
    job.sampled()
    job.listen(watch.batch, watch.forwarded, watch.backward, watch.watching, watch.ending)


class _Seen:
    """One kind of thing seen: in which step first, how often, where, and how often functions were followed for it."""

    def __init__(self, first: int) -> None:
        self.first = first
        self.times = self.attempts = self.sure = 0
        self.event: Broadcast | Probabilities | None = None


class _Losses:
    """Looks at the graph of each loss when its backward pass begins."""

    def __init__(self, job: Job) -> None:
        self.job, self.lines = job, Lines(job)
        self.seen: dict[tuple[str, str], _Seen] = {}
        self.classes: dict[int, int] = {}  # sightings by number of classes
        self.distances: dict[str, int] = {}  # sightings of losses of a regression, by kind
        self.bare = 0  # of likelihoods that were given something else than the output of log_softmax
        self.guessed: list[tuple[Guess, bool, int]] = []  # what was noted; whether it is alone; how many others are
        self.loader: Any = None  # weakly: the one that delivered last
        self.outputs = {False: 0, True: 0}  # outputs of opaque modules, by whether they are probabilities

    def batch(self, loader: Any, _batch: Any) -> None:
        self.loader = weakref.ref(loader)

    def watching(self) -> None:
        if self.classes or self.bare:
            self.lines.follow("entropies", _WINDOW)
        if self.distances:
            self.lines.follow("distances", _WINDOW)

    def forwarded(self, module: Any, output: Any) -> None:
        """An output whose making is hidden, in a compiled graph or by hand, is looked at itself."""
        import torch

        self.lines.latest = (type(module), weakref.ref(output)) if type(output) is torch.Tensor else None
        table = type(output) is torch.Tensor and output.dim() >= 2 and output.shape[1] > 1
        if table and output.grad_fn is not None and _nodes.kind(output.grad_fn) in _OPAQUE:
            _nodes.mark(output.grad_fn).output = True
            values = output.detach().float()
            sums = torch.stack([(values.sum(at) - 1).abs().max() for at in (1, -1)]).min() < 1e-3
            self.job.late.read((sums & (values.min() >= 0)).float(), self.judge_output)

    def judge_output(self, value: float) -> None:
        self.outputs[bool(value)] += 1

    def backward(self, roots: Any) -> None:
        for root in roots:
            for node, alone in _nodes.near(root.grad_fn) if root.grad_fn is not None else ():
                name, told = _nodes.kind(node), _nodes.marked(node)
                if told is not None and told.guess is not None:
                    self.look_at_guess(told.guess, alone)
                if name in _BINARY:
                    self.count(2)
                if name in _DISTANCES:
                    self.measure(name)
                if name in _nodes.ENTROPIES:
                    self.look_at_entropy(node)
                elif name == "BinaryCrossEntropyWithLogits":
                    words = ("Sigmoid", "Softmax", "Relu")
                    self.look_at_activation(node, words, "binary_cross_entropy_with_logits", node)
                elif name == "LogSoftmax":
                    self.look_at_activation(node, ("Softmax", "Relu"), "cross_entropy", node)
                elif name in _POINTWISE or name in _PAIRED:
                    self.look_at_shapes(node, name)

    def look_at_guess(self, guess: Guess, alone: bool) -> None:
        """Keeps what a loss has noted until its numbers have arrived."""
        others = len(self.classes) + len(self.distances) + bool(self.bare) - 1
        self.guessed.append((guess, alone, others))
        self.settle(self.job.step - _ARRIVED)

    def settle(self, until: int) -> None:
        while self.guessed and self.guessed[0][0].at <= until:
            guess, alone, others = self.guessed.pop(0)
            self.job.record(replace(guess, alone=alone, others=others))

    def look_at_entropy(self, node: Any) -> None:
        below, _ = _nodes.source(node, 0)  # of sequences it stands below a reshape
        if _nodes.is_bare(node):
            self.bare += 1
            if self.bare in _FOLLOWED:
                self.lines.follow("entropies")
        if below is None or _nodes.kind(below) != "LogSoftmax":
            return
        self.look_at_activation(below, ("Softmax", "Relu"), "cross_entropy", node)
        shape = _nodes.shape(below)
        if len(shape) > 1:
            self.count(shape[1])

    def count(self, classes: int) -> None:
        self.classes[classes] = number = self.classes.get(classes, 0) + 1
        if number in _FOLLOWED:
            self.lines.follow("entropies")
        loader = self.loader() if number == min(_FOLLOWED) and self.loader is not None else None
        if loader is not None:
            self.job.record(Samples(further=[*samples(self.job, loader), *orders(self.job, loader)]))

    def measure(self, kind: str) -> None:
        self.distances[kind] = number = self.distances.get(kind, 0) + 1
        if number in _FOLLOWED:
            self.lines.follow("distances")

    def look_at_activation(self, node: Any, words: tuple[str, ...], loss: str, consumer: Any) -> None:
        """NODE takes the softmax or sigmoid of its input: is that one already, or cut off below 0?"""
        made, _ = _nodes.source(node, 0)
        while made is not None and _nodes.kind(made) in _nodes.LIMITS:  # kept from 0 and 1, they are what they were
            made, _ = _nodes.source(made, 0)
        if made is None:
            return
        word, told = _nodes.kind(made), _nodes.marked(made)
        if told is not None and told.output and word not in words:
            word = "probabilities"
        elif word not in words or (word == "Softmax" == words[0] and not _same_dimension(node, made)):
            return
        seen = self.seen.setdefault((word, loss), _Seen(self.job.step))
        called = _nodes.marked(consumer)
        path, line = (called.path or "", called.line or 0) if called is not None else ("", 0)
        place = told if told is not None and told.line else called or _nodes.Mark()
        event = (Rectified if word == "Relu" else Probabilities)(
            word=word.lower(),
            loss=loss,
            loss_line=line,
            path=place.path,
            line=place.line,
            module=place.module,
            further=[(f"{loss} is called here", path, line)],
        )
        self.saw(seen, event, sure=(called is not None) + 2 * (told is not None))
        if called is None or (word != "probabilities" and told is None):
            self.suspect(seen, "activations")

    def look_at_shapes(self, node: Any, name: str) -> None:
        """A prediction that the operation repeated for each sample of the batch: was it paired with every target?"""
        whole = _nodes.shape(node) if name in _PAIRED else _pointwise(node)
        for number in range(min(2, len(node.next_functions))):
            made, output = node.next_functions[number]
            if made is not None and _nodes.kind(made) == "Expand":
                made, output = made.next_functions[0]
            if made is None or not (
                _crossed(_nodes.shape(made, output), whole) or (name not in _PAIRED and _alone(made, output, whole))
            ):
                continue
            seen = self.seen.setdefault((name, ""), _Seen(self.job.step))
            told = _nodes.marked(node)
            if told is None:
                self.suspect(seen, _PAIRED.get(name, "losses"))
            elif told.given is not None:
                event = Broadcast(
                    loss=name, given=told.given, path=told.path, line=told.line, module=told.module,
                    further=told.returns,
                )  # fmt: skip
                self.saw(seen, event, sure=1)

    def saw(self, seen: _Seen, event: Broadcast | Probabilities, *, sure: int) -> None:
        """EVENT replaces that of an earlier step that was less SURE."""
        if seen.event is None:
            path, line = self.job.caller()
            seen.event = replace(event, path=path, line=line)
        if sure > seen.sure:
            seen.event, seen.sure = event, sure
        seen.first = min(seen.first, self.job.step)  # steps count from 0 again once an optimizer steps
        seen.times += 1
        if seen.times in _TIMES:
            self.write(seen)

    def suspect(self, seen: _Seen, what: str) -> None:
        if seen.attempts < _ATTEMPTS:
            seen.attempts += 1
            self.lines.follow(what)

    def write(self, seen: _Seen) -> None:
        event = seen.event
        is_judged_later = isinstance(event, Probabilities) and event.word == "probabilities"
        if event is None or (is_judged_later and (self.outputs[False] or self.outputs[True] < seen.times)):
            return
        self.job.record(replace(event, times=seen.times, first=seen.first))

    def ending(self) -> None:
        self.settle(self.job.step)
        for seen in self.seen.values():
            self.write(seen)


def _same_dimension(outer: Any, inner: Any) -> bool:
    """Whether two softmaxes run over the same dimension; a reshape between them leaves that open."""
    shapes = _nodes.shape(outer), _nodes.shape(inner)
    if shapes[0] != shapes[1]:
        return True
    first, second = ((each._saved_dim + 2**63) % 2**64 - 2**63 for each in (outer, inner))
    return bool(first % len(shapes[0]) == second % len(shapes[0]))


def _pointwise(node: Any) -> tuple[int, ...]:
    """The shape that a loss compares elementwise."""
    made = next((each for each, _ in node.next_functions if each is not None), None)
    return _nodes.shape(made) if made is not None and _nodes.kind(made) == "Expand" else ()


def _alone(made: Any, output: int, whole: tuple[int, ...]) -> bool:
    """Whether a loss of torch's own repeated one prediction that was computed, no parameter, for a whole batch."""
    part = _nodes.shape(made, output)
    return (
        len(part) == len(whole) > 1
        and part[0] == 1 < whole[0]
        and part[1:] == whole[1:]
        and _nodes.kind(made) != "AccumulateGrad"
    )


def _crossed(part: tuple[int, ...], whole: tuple[int, ...]) -> bool:
    """Whether the operation repeated a batch of shape PART once for each of its samples."""
    return len(part) > 0 and part[0] > 1 and prod(whole) == prod(part) * part[0]
