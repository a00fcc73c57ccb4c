"""What a run writes down about memory that stays: graphs of earlier steps, and containers that only grow."""

from __future__ import annotations

import gc
import linecache
import os
import re
import sys
import weakref
from collections import OrderedDict, defaultdict, deque
from contextlib import suppress
from pathlib import Path
from time import perf_counter
from types import CellType, FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchtriage.examine.run.job.job import Job

_KEY = "torchtriage"
_ALIVE = 8  # graphs of earlier steps that make it worth asking who holds them
_GROWN = 8 << 20  # bytes of growth that make it worth counting what is there: a count takes tens of milliseconds
_SHARE = 100  # a further look waits until all but this part of the time since the last one was the job's
_LOOKS = 10  # at most
_GROWING = (list, dict, set, deque, OrderedDict, defaultdict)


def graphs(job: Job) -> None:
    """How many steps' autograd graphs outlive their step, who holds them, and what each of them keeps."""
    watch = _Graphs(job)
    job.on("forwarded", watch.forwarded)
    job.on("backwarded", watch.backwarded)
    job.on("iterated", watch.iterated)


def containers(job: Job) -> None:
    """The list, dict, set or deque that grew with memory, its length to the end; where a second epoch began."""
    watch = _Containers(job)
    job.on("batch", watch.batch)
    job.on("iterated", watch.iterated)
    job.on("ending", watch.ending)


class _Mark:
    """Put into a graph node's own metadata: it lives as long as the node does, whoever holds the node."""


class _Looks:
    """Looks at every object of the process: two as they are needed, ten at most, and 1 % of the time after that."""

    def __init__(self) -> None:
        self.taken = 0
        self.next = 0.0

    def due(self) -> bool:
        return self.taken < _LOOKS and (self.taken < 2 or perf_counter() >= self.next)

    def take(self, look: Any) -> Any:
        began = perf_counter()
        self.taken += 1
        found = look()
        self.next = perf_counter() + _SHARE * (perf_counter() - began)
        return found


class _Graphs:
    """Marks one node of every graph and looks, every tenth step, which marks are still alive."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.looks = _Looks()
        self.line: tuple[str, int] = ("", 0)
        self.last = -1
        self.restart()

    def restart(self) -> None:
        """The steps are numbered anew: those that were counted before were parts of one step."""
        self.turn = self.seen = 0
        self.told = 10
        self.described: dict[str, Any] = {}
        self.marks: dict[int, list[tuple[Any, Any, str]]] = {}

    def forwarded(self, _module: Any, output: Any) -> None:
        for tensor in _tensors(output):
            self.mark(tensor, "output")

    def backwarded(self, roots: Any) -> None:
        for root in roots:
            self.mark(root, "loss")
        if self.turn % 10 == 9:
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
        self.seen += self.turn in self.marks
        self.turn += 1
        if self.turn % (10 if len(self.marks) < 2000 else 100):
            return
        self.marks = {
            turn: left for turn, marks in self.marks.items() if (left := [mark for mark in marks if mark[0]()])
        }
        alive = [turn for turn in self.marks if turn < self.turn - 2]
        many = len(alive) >= _ALIVE and 2 * len(alive) >= self.seen
        if many and not self.described.get("holder") and self.looks.due():
            self.described = self.looks.take(lambda: self.describe(alive))
        if self.turn >= self.told:
            self.told *= 2
            path, line = self.line
            facts = {"alive": len(alive), "seen": self.seen, "path": path, "line": line, **self.described}
            self.job.record("graphs", **facts)

    def describe(self, alive: list[int]) -> dict[str, Any]:
        """Of one graph from the middle: who holds it and what it keeps."""
        marks = self.marks[alive[len(alive) // 2]]
        held = [(tensor, kind) for _, weak, kind in marks if (tensor := weak()) is not None]
        if held:
            tensor, kind = held[-1]
            kind = "loss" if tensor.numel() == 1 else kind
            holder = _holder(tensor)
        else:
            tensor, name = _reaching(marks[0][0]())
            kind, holder = "sum", _Holder(name, "tensor") if name else None
        if tensor is None:
            return {"holder": None}
        nodes, saved = _kept_by(tensor)
        share = len(alive) if kind == "sum" else 1
        facts = {"kept": kind, "shape": list(tensor.shape), "nodes": nodes // share, "bytes": saved // share}
        if not holder:
            return {"holder": None, **facts}
        path, line = _filled_at(holder.name) or self.line
        return {"holder": holder.name, "bounded": holder.bounded, "path": path, "line": line, **facts}


class _Containers:
    """Counts containers twice, with growth of memory between the counts, and follows the one that grew most.

    It is held while it is followed, and let go in the step in which nobody else holds it any more.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.looks = _Looks()
        self.batches: dict[int, int] = {}
        self.last, self.longest, self.epoch = -1, 0, False
        self.restart()

    def restart(self) -> None:
        """The steps are numbered anew, and so is growth."""
        self.base = self.told = 0
        self.before: tuple[int, dict[int, int]] = (0, {})
        self.followed: Any = None
        self.facts: dict[str, Any] = {}

    def batch(self, loader: Any, _batch: Any) -> None:
        """The longest loader, which is no validation's, is in its second epoch once it gives more than its length."""
        if not self.epoch:
            seen = self.batches[id(loader)] = self.batches.get(id(loader), 0) + 1
            with suppress(TypeError, NotImplementedError):  # a stream has no length
                self.longest = max(self.longest, len(loader))
                self.epoch = seen > len(loader) == self.longest
            if self.epoch:
                self.job.record("second-epoch")

    def iterated(self, step: int) -> None:
        if step <= self.last:
            self.restart()
        self.last = step
        if self.followed is not None:
            if sys.getrefcount(self.followed) <= 2:
                self.restart()
            elif step >= self.told + max(8, step // 10):
                self.tell()
        elif step % 8 == 7 and self.looks.due():
            used = _used()
            if not self.base:
                self.base = used
            elif used > self.base + _GROWN:
                self.base = used
                self.looks.take(self.look)

    def ending(self) -> None:
        if self.followed is not None:
            self.tell()

    def tell(self) -> None:
        self.told = self.last
        self.job.record("container", entries=len(self.followed), **self.facts)

    def look(self) -> None:
        """Counts; and follows what has grown since the last count, if the user knows it by a name."""
        step, before = self.before
        count = {id(each): len(each) for each in gc.get_objects() if type(each) in _GROWING and len(each) >= 4}
        self.before = self.last, count
        turns = self.last - step
        grown = {each: size - before[each] for each, size in count.items() if size - before.get(each, size) >= 2}
        found = [each for each in gc.get_objects() if id(each) in grown and type(each) in _GROWING and each]
        found = [each for each in found if grown[id(each)] >= turns // 4 and each is not before and each is not count]
        weights = {id(each): grown[id(each)] * _size(_last(each)) for each in found}
        found = [each for each in found if weights[id(each)] >= _GROWN // 8]
        for each in sorted(found, key=lambda each: -weights[id(each)])[:2]:
            holder = _owner(each, type(each).__name__, 0, iter(range(12)))
            if holder:
                (path, line), item = _filled_at(holder.name) or ("", 0), _last(each)
                self.facts = {"type": type(each).__name__, "since": step, "had": before[id(each)]}
                self.facts |= {"holds": _described(item), "bytes": _size(item), "holder": holder.name}
                self.facts |= {"bounded": holder.bounded, "dataset": holder.dataset, "path": path, "line": line}
                self.followed, self.before = each, (0, {})
                self.tell()
                break


class _Holder:
    """What keeps something alive: the name under which the user knows it.

    bounded: a container that drops its oldest entries by itself. dataset: an attribute of a Dataset.
    """

    def __init__(self, name: str, kind: str, *, bounded: bool = False, dataset: bool = False) -> None:
        self.name, self.kind, self.bounded, self.dataset = name, kind, bounded, dataset


def _holder(tensor: Any) -> _Holder | None:
    """The named container, at most three levels up, that holds TENSOR."""
    for each in gc.get_referrers(tensor):
        if isinstance(each, (*_GROWING, tuple)) and not _is_namespace(each):
            found = _owner(each, type(each).__name__, 0, iter(range(12)))
            if found:
                return found
    return _owner(tensor, "tensor", 3, iter(range(12)))


def _owner(thing: Any, kind: str, depth: int, tries: Iterator[int]) -> _Holder | None:
    """Under which variable, attribute or container of these THING is known, as far as TRIES at its referrers go."""
    from torch.utils.data import Dataset

    bounded = getattr(thing, "maxlen", None) is not None
    for space in _namespaces():
        for variable, value in list(space.items()):
            if value is thing:
                return _Holder(str(variable), kind, bounded=bounded)
    for each in gc.get_referrers(thing):
        if type(each).__module__ == __name__ or isinstance(each, (FrameType, CellType)):
            continue
        if next(tries, None) is None:
            break
        owner = _instance_of(each)
        name = next((name for name, value in _attributes(owner) if value is thing), None) if owner is not None else None
        if name is not None:
            return _Holder(f"{type(owner).__name__}.{name}", kind, bounded=bounded, dataset=isinstance(owner, Dataset))
        if depth < 2 and isinstance(each, (*_GROWING, tuple)) and owner is each:
            found = _owner(each, type(each).__name__, depth + 1, tries)
            if found:
                return found
    return None


def _namespaces() -> list[dict[str, Any]]:
    """The local and global variables of the user's frames that are running, the nearest first."""
    spaces: list[dict[str, Any]] = []
    frame: Any = sys._getframe(1)
    while frame is not None:
        package = str(frame.f_globals.get("__name__")).partition(".")[0]
        if package != "torch" and not package.startswith(("_torchtriage", "torchtriage")):
            spaces += [frame.f_locals, frame.f_globals]
        frame = frame.f_back
    return spaces


def _reaching(mark: Any) -> tuple[Any, str | None]:
    """The variable, or entry of a variable, whose graph reaches the node of MARK: a sum over steps, for one."""
    import torch

    for space in _namespaces():
        for known, value in list(space.items()):
            inner = value.items() if type(value) is dict else _attributes(_instance_of(value))
            for part, tensor in [(None, value), *list(inner)[:64]]:
                node = tensor.grad_fn if isinstance(tensor, torch.Tensor) else None
                if node is not None and any(below.metadata.get(_KEY) is mark for below in _nodes(node)):
                    entry = "" if part is None else f"[{part!r}]" if type(value) is dict else f".{part}"
                    return tensor, f"{known}{entry}"
    return None, None


def _nodes(node: Any) -> Any:
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
    for node in _nodes(tensor.grad_fn):
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


def _filled_at(name: str) -> tuple[str, int] | None:
    """The first line of the user's running files that puts something into the container of that name."""
    last = re.escape(re.split(r"[.\[]", name)[-1 if "[" not in name else 0])
    puts = r"\s*(\[[^\]]*\]\s*)?(\.(append|appendleft|extend|add|insert|update|setdefault)\(|\+=|(?<=\])=[^=])"
    pattern = re.compile(rf"\b{last}{puts}|\b{last}\s*=\s*{last}\s*\+")
    files = [space.get("__file__") for space in _namespaces()]
    for file in dict.fromkeys(path for path in files if isinstance(path, str)):
        for number, text in enumerate(linecache.getlines(file), start=1):
            if pattern.search(text.partition("#")[0]):
                path = Path(file).absolute()
                return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path), number
    return None


def _used() -> int:
    """Bytes allocated on CUDA where it is in use, else resident and not in a mapped file; 0 where nobody tells."""
    import torch

    if torch.cuda.is_initialized():
        return int(torch.cuda.memory_allocated())
    try:
        resident, shared = Path("/proc/self/statm").read_bytes().split()[1:3]
    except OSError:
        return 0
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")


def _last(container: Any) -> Any:
    """The entry that came last, where there is an order."""
    if isinstance(container, dict):
        return container[next(reversed(container))]
    return next(iter(container)) if isinstance(container, set) else container[-1]


def _size(item: Any) -> int:
    parts = list(item.values()) if isinstance(item, dict) else item
    if isinstance(parts, (tuple, list)):
        return sum(_size(part) for part in parts[:16]) + sys.getsizeof(item)
    nbytes = getattr(item, "nbytes", 0)
    return sys.getsizeof(item) + (nbytes if isinstance(nbytes, int) else 0)


def _described(item: Any) -> str:
    shape = getattr(item, "shape", None)
    return f"{type(item).__name__}{tuple(shape)}" if isinstance(shape, tuple) else type(item).__name__


def _tensors(value: Any) -> list[Any]:
    import torch
    from torch.utils._pytree import tree_leaves

    if isinstance(value, torch.Tensor):  # the usual output, twenty times as fast
        return [value]
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def _is_namespace(thing: Any) -> bool:
    """A module's or an instance's own dict, or a frame's: not a container that the user filled."""
    return isinstance(thing, dict) and ("__name__" in thing or _instance_of(thing) is not thing)


def _instance_of(thing: Any) -> Any:
    """The object whose attributes THING holds, when it is an object's dict; a plain container gives itself back."""
    if type(thing) is dict:
        for each in gc.get_referrers(thing):
            if getattr(each, "__dict__", None) is thing:
                return each
    return thing


def _attributes(thing: Any) -> list[tuple[str, Any]]:
    own = getattr(thing, "__dict__", None)
    return list(own.items()) if type(own) is dict else []
