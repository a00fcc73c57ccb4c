"""What a run writes down about the autograd graphs of earlier steps that stay alive."""

from __future__ import annotations

import gc
import sys
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from .events import Graphs, InnerGraphs
from .fillings import filled_at, told_beside
from .holders import Holder, Looks, attributes, holder_of, instance_of, namespaces
from .piles import Pile

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

_KEY, _WITHIN = "torchtriage", "torchtriage: within"
_BESIDE, _HOLDERS = 256, 4  # nodes below a tensor that are looked at; tensors whose holders are asked for
_WALKED = ((64, 2), (sys.maxsize, 32))  # up to which step, and how many steps apart, whole graphs are marked
_COUNTED = ((32, 2), (2000, 4))  # up to how many of these, and how many of them apart, they are counted
_NODES = 4096  # of a graph that are marked at most


def graphs(job: Job) -> None:
    """How many steps' autograd graphs outlive their step, who holds them, and what each of them keeps."""
    job.spaced()
    watch = _Graphs(job)
    job.listen(watch.forwarded, watch.backwarded, watch.iterated, watch.ending)


class _Graphs:
    """Marks the last nodes of the graph of each step that it sees, now and then all of them, and looks which marks are
    still alive.

    whole: marks of outputs and losses. within: of all nodes below a loss, which see what a forward pass has kept.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.looks = Looks()
        self.line: tuple[str, int] = ("", 0)
        self.last = -1
        self.restart()

    def restart(self) -> None:
        """The steps are numbered anew: those that were counted before were parts of one step."""
        self.whole, self.within = Pile(_KEY, Graphs), Pile(_WITHIN, InnerGraphs, _COUNTED)

    def forwarded(self, _module: Any, output: Any) -> None:
        self.whole.turn = self.job.step
        for tensor in _tensors(output):
            self.whole.mark(getattr(tensor, "grad_fn", None), tensor, "output")

    def backwarded(self, roots: Any) -> None:
        self.whole.turn = self.within.turn = step = self.job.step
        for root in roots:
            self.whole.mark(getattr(root, "grad_fn", None), root, "loss")
        if self.whole.seen % 4 == 3:
            self.line = self.job.caller()
        if not step % next(every for limit, every in _WALKED if step < limit):
            nodes = (nodes_below(root.grad_fn) for root in roots if getattr(root, "grad_fn", None) is not None)
            self.within.mark_all(islice(chain.from_iterable(nodes), _NODES))

    def iterated(self, step: int) -> None:
        if step <= self.last:
            self.restart()
        self.last = step
        for pile in (self.whole, self.within):
            if pile.ended(step):
                self.count(pile)

    def count(self, pile: Pile) -> None:
        many = pile.count()
        if many and not pile.described.holder and self.looks.due():
            pile.described = self.looks.take(lambda: self.describe(pile))
        if pile.due(many=many):
            self.job.record(pile.counted(self.line))

    def ending(self) -> None:
        """What was counted last: the functions that held graphs have come back by now."""
        for pile in (self.whole, self.within):
            if pile.alive:
                self.job.record(pile.counted(self.line))

    def describe(self, pile: Pile) -> Graphs:
        """Of one graph from the middle: who holds it and what it keeps."""
        described, marks = pile.nothing(), pile.middle()
        described.holder = None
        held = [(tensor, kind) for _, weak, kind in marks if (tensor := weak()) is not None]
        if held:
            tensor, kind = held[-1]
            kind = "loss" if tensor.numel() == 1 else kind
            holder = holder_of(self.job, tensor)
        elif pile is self.within:
            kind, (tensor, holder) = "within", _held_beside(self.job, marks[0][0](), pile.key)
        else:
            kind, (tensor, holder) = "sum", _reaching(marks[0][0]())
        if tensor is None and pile is self.whole:
            tensor, holder = _held_beside(self.job, marks[0][0](), pile.key)
            kind = "loss" if tensor is not None and tensor.numel() == 1 else "output"
        if tensor is None:
            return described
        nodes, saved = _kept_by(tensor)
        share = len(pile.alive) if kind == "sum" else 1
        described.kept, described.shape = kind, list(tensor.shape)
        described.nodes, described.bytes = nodes // share, saved // share
        if holder:
            described.path, described.line = (*filled_at(self.job, holder), self.line)[0]
            described.holder, described.bounded, described.is_on_ctx = holder.name, holder.bounded, holder.is_on_ctx
            described.further = told_beside(self.job, holder)
        return described


def _reaching(mark: Any) -> tuple[Any, Holder | None]:
    """The variable, or entry of a variable, whose graph reaches the node of MARK: a sum over steps, for one."""
    import torch

    for space, code in namespaces():
        for known, value in list(space.items()):
            owner = instance_of(value)
            inner = value.items() if type(value) is dict else attributes(owner)
            for part, tensor in [(None, value), *list(inner)[:64]]:
                node = tensor.grad_fn if isinstance(tensor, torch.Tensor) else None
                if node is not None and any(below.metadata.get(_KEY) is mark for below in nodes_below(node)):
                    entry = "" if part is None else f"[{part!r}]" if type(value) is dict else f".{part}"
                    kind = type(owner) if entry.startswith(".") else None
                    holder = Holder(f"{known}{entry}", [code], owner=kind)
                    holder.key = part if entry.startswith("[") else None
                    return tensor, holder
    return None, None


def _held_beside(job: Job, mark: Any, key: str) -> tuple[Any, Holder | None]:
    """A tensor that is neither an output nor a whole loss, whose graph reaches a node of MARK, and who holds it."""
    import torch

    tried = 0
    for each in gc.get_objects():
        if type(each) is torch.Tensor and each.grad_fn is not None:
            nodes = islice(nodes_below(each.grad_fn), _BESIDE)
            if any(below.metadata.get(key) is mark for below in nodes):
                holder, tried = holder_of(job, each), tried + 1
                if holder or tried == _HOLDERS:
                    return each, holder
    return None, None


def nodes_below(node: Any) -> Any:
    """The nodes below NODE, each once, at most 20,000."""
    seen, todo = {node}, [node]
    while todo and len(seen) < 20_000:
        node = todo.pop()
        yield node
        below = {following for following, _ in node.next_functions if following is not None} - seen
        seen |= below
        todo += below


def _kept_by(tensor: Any) -> tuple[int, int]:
    """Nodes in the graph of TENSOR, and the bytes that they and it keep: parameters, which live anyway, left out."""
    import torch

    kept: dict[int, int] = {tensor.data_ptr(): tensor.nbytes}
    count = 0
    for node in nodes_below(tensor.grad_fn):
        count += 1
        for name in dir(node):
            if not name.startswith("_saved_"):
                continue
            if getattr(getattr(node, f"_raw{name}", None), "unpack_hook", None) is not None:
                continue  # to look would run it: a checkpoint computes its part again, on a device that may be full
            try:
                value = getattr(node, name)
            except RuntimeError:  # freed by backward
                continue
            if isinstance(value, torch.Tensor) and not (value.is_leaf and value.requires_grad):
                kept[value.data_ptr()] = value.nbytes
    return count, sum(kept.values())


def _tensors(value: Any) -> list[Any]:
    import torch
    from torch.utils._pytree import tree_leaves

    if isinstance(value, torch.Tensor):  # the usual output, twenty times as fast
        return [value]
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]
