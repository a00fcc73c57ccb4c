"""What a run writes down about memory that stays: graphs of earlier steps, and containers that only grow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

_KEY = "torchtriage"
_ALIVE = 8  # graphs of earlier steps that make it worth asking who holds them
_GROWN = 16 << 20  # bytes of growth that make it worth counting what is there: a count takes tens of milliseconds


def graphs(job: Job) -> None:
    """How many steps' autograd graphs outlive their step, who holds them, and what each of them keeps."""
    watch = _Graphs(job)
    job.on("forwarded", watch.forwarded)
    job.on("backwarded", watch.backwarded)
    job.on("iterated", watch.iterated)


def containers(job: Job) -> None:
    """Once memory has grown: the list, dict, set or deque that grew with it, its name, and what it holds."""
    watch = _Containers(job)
    job.on("iterated", watch.iterated)


class _Mark:
    """Put into a graph node's own metadata: it lives as long as the node does, whoever holds the node."""


class _Graphs:
    """Marks one node of every graph and looks, every tenth step, which marks are still alive."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.turn = self.seen = 0
        self.told = 10
        self.described: dict[str, Any] = {}
        self.marks: dict[int, list[tuple[Any, Any, str]]] = {}
        self.line: tuple[str, int] = ("", 0)

    def forwarded(self, _module: Any, output: Any) -> None:
        for tensor in _tensors(output):
            self.mark(tensor, "output")

    def backwarded(self, roots: Any) -> None:
        for root in roots:
            self.mark(root, "loss")
        if self.turn % 10 == 9:
            self.line = self.job.caller()

    def mark(self, tensor: Any, kind: str) -> None:
        import weakref

        node = getattr(tensor, "grad_fn", None)
        if node is None or _KEY in node.metadata:
            return
        mark = node.metadata[_KEY] = _Mark()
        self.marks.setdefault(self.turn, []).append((weakref.ref(mark), weakref.ref(tensor), kind))

    def iterated(self, _step: int) -> None:
        self.seen += self.turn in self.marks
        self.turn += 1
        if self.turn % (10 if len(self.marks) < 2000 else 100):
            return
        self.marks = {
            turn: left for turn, marks in self.marks.items() if (left := [mark for mark in marks if mark[0]()])
        }
        alive = [turn for turn in self.marks if turn < self.turn - 2]
        if len(alive) >= _ALIVE and 2 * len(alive) >= self.seen and not self.described.get("holder"):
            self.described = self.describe(alive)
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
    """Counts containers twice, with growth of memory between the counts, and names the one that grew most."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.turn = self.looks = 0
        self.base = self.began = 0
        self.before: dict[int, int] = {}

    def iterated(self, _step: int) -> None:
        self.turn += 1
        if self.turn % 16 or self.looks >= 3 or self.turn < 16:
            return
        used = _used()
        if not self.base:
            self.base = used
        elif used > self.base + _GROWN:
            self.base, before = used, self.before
            self.before = self.count()
            if before:
                self.looks += 1
                self.tell(before)
            self.began = self.turn

    def count(self) -> dict[int, int]:
        import gc

        return {id(each): len(each) for each in gc.get_objects() if type(each) in _growing() and len(each) >= 4}

    def tell(self, before: dict[int, int]) -> None:
        import gc

        turns = self.turn - self.began
        grown = [
            (len(each) - before[id(each)], each)
            for each in gc.get_objects()
            if type(each) in _growing() and len(each) - before.get(id(each), len(each)) >= max(2, turns // 4)
        ]
        grown = [(growth, each) for growth, each in grown if each is not before and each is not self.before]
        if not grown:
            return
        growth, largest = max(grown, key=lambda pair: pair[0] * _size(_last(pair[1])))
        del grown
        item = _last(largest)
        facts = {"growth": growth, "turns": turns, "holds": _described(item), "bytes": _size(item)}
        holder = _owner(largest, type(largest).__name__, 0)
        if holder:
            path, line = _filled_at(holder.name) or ("", 0)
            facts |= {"holder": holder.name, "dataset": holder.dataset, "path": path, "line": line}
            self.job.record("container", type=type(largest).__name__, **facts)


class _Holder:
    """What keeps something alive: the name under which the user knows it.

    bounded: a container that drops its oldest entries by itself. dataset: an attribute of a Dataset.
    """

    def __init__(self, name: str, kind: str, *, bounded: bool = False, dataset: bool = False) -> None:
        self.name, self.kind, self.bounded, self.dataset = name, kind, bounded, dataset


def _growing() -> tuple[type, ...]:
    from collections import OrderedDict, defaultdict, deque

    return (list, dict, set, deque, OrderedDict, defaultdict)


def _holder(tensor: Any) -> _Holder | None:
    """The named container, at most three levels up, that holds TENSOR."""
    import gc

    for each in gc.get_referrers(tensor):
        if isinstance(each, (*_growing(), tuple)) and not _is_namespace(each):
            found = _owner(each, type(each).__name__, 0)
            if found:
                return found
    return _owner(tensor, "tensor", 3)


def _owner(thing: Any, kind: str, depth: int) -> _Holder | None:
    """Under which variable, attribute or container of these THING is known."""
    import gc

    bounded = getattr(thing, "maxlen", None) is not None
    for space in _namespaces():
        for variable, value in list(space.items()):
            if value is thing:
                return _Holder(str(variable), kind, bounded=bounded)
    for each in gc.get_referrers(thing):
        if type(each).__module__ == __name__ or _is_frame(each):
            continue
        owner = _instance_of(each)
        name = next((name for name, value in _attributes(owner) if value is thing), None) if owner is not None else None
        if name is not None:
            return _Holder(f"{type(owner).__name__}.{name}", kind, bounded=bounded, dataset=_is_dataset(owner))
        if depth < 2 and isinstance(each, (*_growing(), tuple)) and not _is_namespace(each):
            found = _owner(each, type(each).__name__, depth + 1)
            if found:
                return found
    return None


def _namespaces() -> list[dict[str, Any]]:
    """The local and global variables of the user's frames that are running, the nearest first."""
    import sys

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
                if isinstance(tensor, torch.Tensor) and tensor.grad_fn is not None and _reaches(tensor.grad_fn, mark):
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


def _reaches(node: Any, mark: Any) -> bool:
    return any(below.metadata.get(_KEY) is mark for below in _nodes(node))


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
    import linecache
    import re
    from pathlib import Path

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
    """Bytes allocated on CUDA where it is in use, else resident; 0 where the system does not tell."""
    import os

    import torch

    if torch.cuda.is_initialized():
        return int(torch.cuda.memory_allocated())
    try:
        file = os.open("/proc/self/statm", os.O_RDONLY)
    except OSError:
        return 0
    try:
        return int(os.read(file, 64).split()[1]) * os.sysconf("SC_PAGE_SIZE")
    finally:
        os.close(file)


def _last(container: Any) -> Any:
    """The entry that came last, where there is an order."""
    if isinstance(container, dict):
        return container[next(reversed(container))]
    return next(iter(container)) if isinstance(container, set) else container[-1]


def _size(item: Any) -> int:
    import sys

    if isinstance(item, (tuple, list)):
        return sum(_size(part) for part in item[:16]) + sys.getsizeof(item)
    if isinstance(item, dict):
        return sum(_size(part) for part in list(item.values())[:16]) + sys.getsizeof(item)
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


def _is_frame(thing: Any) -> bool:
    import types

    return isinstance(thing, (types.FrameType, types.CellType))


def _is_namespace(thing: Any) -> bool:
    """A module's or an instance's own dict, or a frame's: not a container that the user filled."""
    return isinstance(thing, dict) and ("__name__" in thing or _instance_of(thing) is not thing)


def _instance_of(thing: Any) -> Any:
    """The object whose attributes THING holds, when it is an object's dict; a plain container gives itself back."""
    import gc

    if type(thing) is dict:
        for each in gc.get_referrers(thing):
            if getattr(each, "__dict__", None) is thing:
                return each
    return thing


def _attributes(thing: Any) -> list[tuple[str, Any]]:
    own = getattr(thing, "__dict__", None)
    return list(own.items()) if type(own) is dict else []


def _is_dataset(thing: Any) -> bool:
    import torch

    return isinstance(thing, torch.utils.data.Dataset)
