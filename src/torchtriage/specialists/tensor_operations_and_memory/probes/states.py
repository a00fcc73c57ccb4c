"""What a run writes down about states that a model gives itself from step to step together with their graphs."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from torchtriage.examine.run.job.events import replace

from .events import CarriedState
from .fillings import filled_at, set_at
from .graphs import nodes_below
from .holders import Holder

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

_MADE, _PASSED = "torchtriage: made", "torchtriage: passed"  # in the metadata of graph nodes
_NEAR = 32  # nodes below an argument among which its maker is looked for
_WALKS = 8  # first backward passes whose graphs are walked in search of a state that nobody hands over
_COUNTS = 64  # backward passes over carried states whose nodes are counted
_LEAVES = 32  # tensors of a call that are looked at
_LONG = 20_000  # nodes: graphs are counted no further
_TIMES = frozenset({1, 2, 4, 8, 16, 24, 32, 48, 64})


def states(job: Job) -> None:
    """Calls of a model with its own earlier output, when a backward has been through that; the size of the graphs."""
    import torch

    job.sampled()
    watch = _States(job, torch.Tensor)
    job.listen(watch.forward, watch.forwarded, watch.backward, watch.backwarded)


class _Made:
    """Which root made an output, and after how many backward passes."""

    def __init__(self, root: Any, backwards: int) -> None:
        self.root, self.backwards = weakref.ref(root), backwards


class _States:
    """passes, backwards: of all roots so far, in steps that were watched."""

    def __init__(self, job: Job, tensor: type) -> None:
        self.job, self.tensor, self.probe = job, tensor, job.placing
        self.passes = self.backwards = self.walks = 0
        self.carried: CarriedState | None = None  # by a pass since the last backward
        self.counts: list[int] = []

    def forward(self, module: Any, args: Any, kwargs: Any) -> None:
        self.passes += 1
        if self.carried:
            return
        for name, value in (*enumerate(args), *kwargs.items()):
            for tensor in _tensors(value, self.tensor):
                if tensor.grad_fn is not None and self.of_before(module, tensor.grad_fn):
                    path, line = self.job.caller()
                    named = f"argument {name}" if isinstance(name, str) else f"argument number {name + 1}"
                    self.carried = _carried(module, named, path, line)
                    return

    def of_before(self, module: Any, last: Any) -> bool:
        """Whether MODULE made this itself, before the latest backward."""
        for number, node in enumerate(nodes_below(last)):
            made = node.metadata.get(_MADE)
            if made is not None:
                return made.root() is module and made.backwards < self.backwards
            if number >= _NEAR:
                break
        return False

    def forwarded(self, module: Any, output: Any) -> None:
        for tensor in _tensors(output, self.tensor):
            if tensor.grad_fn is not None:
                tensor.grad_fn.metadata.setdefault(_MADE, _Made(module, self.backwards))

    def backward(self, roots: Any) -> None:
        """Counts the graph of a loss when it may reach back into one that a backward has been through."""
        self.walks += 1
        if len(self.counts) >= _COUNTS or not (self.carried or self.walks <= _WALKS or self.counts):
            return
        count, older = 0, False
        for root in roots:
            for node in nodes_below(root.grad_fn) if root.grad_fn is not None else ():
                count += 1
                if not hasattr(node, "variable"):  # the leaves' own nodes belong to all graphs
                    older = older or node.metadata.setdefault(_PASSED, self.passes) < self.passes
        if older and not self.carried:
            self.carried = self.find_carried()
        if older and self.carried:
            self.counts.append(count)
            if len(self.counts) in _TIMES:
                further = [*self.carried.further, ("this backward pass reaches back to it", *self.job.caller())]
                told = replace(self.carried, nodes=self.counts, retained=self.job.retaining, further=further)
                self.job.record(told)
            if count >= _LONG:
                self.job.withdraw(self.probe)

    def find_carried(self) -> CarriedState | None:
        """The attribute of a module under which a tensor lives whose graph a backward has been through earlier."""
        for root in self.job.roots:
            for part in root.modules():
                for name, value in list(vars(part).items()):
                    if any(self.reaches_back(tensor) for tensor in _tensors(value, self.tensor)):
                        (path, line), *others = [*self.assigned(type(part), name), ("", 0)]
                        state = f"{type(part).__name__}.{name}"
                        further = [(f"{state} is set here too", *each) for each in others]
                        return replace(_carried(root, state, path, line), further=further)
        return None

    def assigned(self, kind: type, name: str) -> list[tuple[str, int]]:
        """Where methods other than the constructor set the attribute; where they make it from itself comes first."""
        codes = [each for each in self.job.written.codes(kind) if each.co_name != "__init__"]
        return filled_at(self.job, Holder(f".{name}", codes, owner=kind)) + set_at(self.job, codes, name)

    def reaches_back(self, tensor: Any) -> bool:
        if tensor.grad_fn is None:
            return False
        return any(node.metadata.get(_PASSED, self.passes) < self.passes for node in nodes_below(tensor.grad_fn))

    def backwarded(self, _roots: Any) -> None:
        self.backwards += 1
        self.carried = None


def _carried(root: Any, state: str, path: str, line: int) -> CarriedState:
    """What is known of it before a backward pass reaches back."""
    return CarriedState(root=type(root).__name__, state=state, path=path, line=line, nodes=(), retained=False)


def _tensors(value: Any, tensor: type) -> list[Any]:
    """The tensors in nested tuples, lists and dicts."""
    if isinstance(value, tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return [leaf for each in value[:_LEAVES] for leaf in _tensors(each, tensor)][:_LEAVES]
    return []
