"""What a run writes down about the autograd graphs of earlier steps that stay alive."""

from __future__ import annotations

import gc
import sys
import weakref
from itertools import islice
from typing import TYPE_CHECKING, Any

from .holders import Holder, Looks, attributes, filled_at, holder_of, instance_of, namespaces

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

_KEY = "torchtriage"
_TOLD = 200  # counts that are written down: an epoch after which graphs are let go has a few
_ALIVE = 8  # graphs of earlier steps that make it worth asking who holds them
_BESIDE, _HOLDERS = 256, 4  # nodes below a tensor that are looked at; tensors whose holders are asked for
_EVERY = ((64, 1), (2048, 4), (sys.maxsize, 16))  # up to which step, and how many steps apart, graphs are marked


def graphs(job: Job) -> None:
    """How many steps' autograd graphs outlive their step, who holds them, and what each of them keeps."""
    watch = _Graphs(job)
    job.listen(watch.forwarded, watch.backwarded, watch.iterated, watch.ending)


class _Mark:
    """Put into a graph node's own metadata: it lives as long as the node does, whoever holds the node."""


class _Graphs:
    """Marks one node of a step's graph and looks, every tenth marked step, which marks are still alive.

    seen: marked steps. begun: of each step whose marks may be alive, how many had been marked before it.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.looks = Looks()
        self.line: tuple[str, int] = ("", 0)
        self.last = -1
        self.lines = 0
        self.restart()

    def restart(self) -> None:
        """The steps are numbered anew: those that were counted before were parts of one step."""
        self.turn = self.seen = self.doubled = 0
        self.marking = True
        self.told = 10
        self.alive: list[int] = []
        self.described: dict[str, Any] = {}
        self.begun: dict[int, int] = {}
        self.marks: dict[int, list[tuple[Any, Any, str]]] = {}

    def forwarded(self, _module: Any, output: Any) -> None:
        if self.marking:
            for tensor in _tensors(output):
                self.mark(tensor, "output")

    def backwarded(self, roots: Any) -> None:
        if self.marking:
            for root in roots:
                self.mark(root, "loss")
            if self.seen % 10 == 9:
                self.line = self.job.caller()

    def mark(self, tensor: Any, kind: str) -> None:
        node = getattr(tensor, "grad_fn", None)
        if node is None or _KEY in node.metadata:
            return
        mark = node.metadata[_KEY] = _Mark()
        self.marks.setdefault(self.turn, []).append((weakref.ref(mark), weakref.ref(tensor), kind))

    def iterated(self, step: int) -> None:
        if step <= self.last:
            self.restart()
        self.last = step
        turn, self.turn = self.turn, self.turn + 1
        if self.marking and turn in self.marks:
            self.begun[turn] = self.seen
            self.seen += 1
            if self.seen % (10 if len(self.marks) < 2000 else 100) == 0:
                self.count()
        self.marking = not self.turn % next(every for limit, every in _EVERY if self.turn < limit)

    def count(self) -> None:
        """Which graphs of earlier steps are still there: written down when they, or the steps, have doubled."""
        self.marks = {
            turn: left for turn, marks in self.marks.items() if (left := [mark for mark in marks if mark[0]()])
        }
        self.begun = {turn: number for turn, number in self.begun.items() if turn in self.marks}
        self.alive = [turn for turn in self.marks if turn < self.turn - 2]
        many = len(self.alive) >= _ALIVE and 2 * len(self.alive) >= self.lately()
        if many and not self.described.get("holder") and self.looks.due():
            self.described = self.looks.take(lambda: self.describe(self.alive))
        if self.seen >= self.told or (many and self.lines < _TOLD and len(self.alive) >= 2 * self.doubled):
            self.told = 2 * self.told if self.seen >= self.told else self.told
            self.doubled = len(self.alive)
            self.tell()
        elif not many:
            self.doubled = 0

    def lately(self) -> int:
        """The marked steps since the oldest one whose graph is alive."""
        return self.seen - self.begun[self.alive[0]] if self.alive else 0

    def tell(self) -> None:
        self.lines += 1
        path, line = self.line
        alive = len(self.alive)
        since = {"since": self.alive[0] if alive else self.turn, "lately": self.lately()}
        facts = {"alive": alive, "seen": self.seen, **since, "path": path, "line": line, **self.described}
        self.job.record("graphs", **facts)

    def ending(self) -> None:
        """What was counted last: the functions that held graphs have come back by now."""
        if self.alive:
            self.tell()

    def describe(self, alive: list[int]) -> dict[str, Any]:
        """Of one graph from the middle: who holds it and what it keeps."""
        marks = self.marks[alive[len(alive) // 2]]
        held = [(tensor, kind) for _, weak, kind in marks if (tensor := weak()) is not None]
        if held:
            tensor, kind = held[-1]
            kind = "loss" if tensor.numel() == 1 else kind
            holder = holder_of(tensor)
        else:
            tensor, name = _reaching(marks[0][0]())
            kind, holder = "sum", Holder(name) if name else None
        if tensor is None:
            tensor, holder = _held_beside(marks[0][0]())
            kind = "loss" if tensor is not None and tensor.numel() == 1 else "output"
        if tensor is None:
            return {"holder": None}
        nodes, saved = _kept_by(tensor)
        share = len(alive) if kind == "sum" else 1
        facts = {"kept": kind, "shape": list(tensor.shape), "nodes": nodes // share, "bytes": saved // share}
        if not holder:
            return {"holder": None, **facts}
        path, line = filled_at(holder.name) or self.line
        return {"holder": holder.name, "bounded": holder.bounded, "path": path, "line": line, **facts}


def _reaching(mark: Any) -> tuple[Any, str | None]:
    """The variable, or entry of a variable, whose graph reaches the node of MARK: a sum over steps, for one."""
    import torch

    for space in namespaces():
        for known, value in list(space.items()):
            inner = value.items() if type(value) is dict else attributes(instance_of(value))
            for part, tensor in [(None, value), *list(inner)[:64]]:
                node = tensor.grad_fn if isinstance(tensor, torch.Tensor) else None
                if node is not None and any(below.metadata.get(_KEY) is mark for below in nodes_below(node)):
                    entry = "" if part is None else f"[{part!r}]" if type(value) is dict else f".{part}"
                    return tensor, f"{known}{entry}"
    return None, None


def _held_beside(mark: Any) -> tuple[Any, Holder | None]:
    """A tensor that is neither an output nor a whole loss, whose graph reaches the node of MARK, and who holds it."""
    import torch

    tried = 0
    for each in gc.get_objects():
        if type(each) is torch.Tensor and each.grad_fn is not None:
            nodes = islice(nodes_below(each.grad_fn), _BESIDE)
            if any(below.metadata.get(_KEY) is mark for below in nodes):
                holder, tried = holder_of(each), tried + 1
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
