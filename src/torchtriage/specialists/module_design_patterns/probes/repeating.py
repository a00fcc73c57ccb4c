"""What a run writes down about containers that hold one layer several times."""

from __future__ import annotations

import ast
import weakref
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from .events import Repeated

if TYPE_CHECKING:
    from types import FrameType

    from torchtriage.examine.run.job.job import Job

_GROWING = {"Sequential": ("__init__", "append", "extend"), "ModuleList": ("append", "extend")}
_SHARED = frozenset(
    {"shared", "share", "sharing", "shares", "tied", "tie", "tying", "ties", "same", "reuse", "reused", "reuses"}
    | {"recurrent", "recurrence", "recursive", "universal", "albert", "looped", "unroll", "unrolled", "siamese"}
)
_SLUG = "layers-shared-by-repetition"  # a comment that names the fault says nothing about the intention
_FOUND = 64  # containers of which notes are kept until the job has stepped


def repeating(job: Job) -> None:
    """Sequential and ModuleList objects in which the same layer with weights stands in several places."""
    import torch

    watch = _Repeating(job)
    for kind, methods in _GROWING.items():
        for name in methods:
            job.wrap(getattr(torch.nn, kind), name, watch.growing(name))


class _Repeating:
    def __init__(self, job: Job) -> None:
        self.job, self.within = job, f"{job.placing} within"
        self.found: dict[int, tuple[Any, tuple[str, int], list[int]]] = {}  # container, weak; where; how often

    def growing(self, name: str) -> Any:
        def make(original: Any) -> Any:
            def grown(container: Any, *args: Any, **kwargs: Any) -> Any:
                result = original(container, *args, **kwargs)
                places = container._modules
                if len(places) > 1 and len(set(map(id, places.values()))) < len(places):
                    self.repeated(container, name)
                return result

            return grown

        return make

    def repeated(self, container: Any, name: str) -> None:
        """Some part stands in several places: with weights, and by a list that was multiplied?"""
        import torch

        frame = self.job.frame()
        counts = _repeats(list(container._modules.values()))
        if frame is None or not counts or len(self.found) >= _FOUND:
            return
        path, line = self.job.caller()
        multiplied = line if name == "append" else _multiplied(self.job, frame)
        if not multiplied and not isinstance(container, torch.nn.Sequential):
            return
        at = multiplied or line
        said = self.job.written.lines_of(frame.f_code, at - 2, at, comments=True).replace(_SLUG, "")
        owner = type(frame.f_locals.get("self")).__name__
        if _SHARED & self.job.written.words(f"{said} {owner} {frame.f_code.co_name}"):
            return
        if not self.found:
            self.job.place(self.within, lambda job: job.listen(self.iterated))
        self.found[id(container)] = (weakref.ref(container), (path, at), counts)

    def iterated(self, _step: int) -> None:
        for key, (kept, where, counts) in list(self.found.items()):
            container = kept()
            if container is None:
                del self.found[key]
            elif (module := self.job.module_name(container)) is not None:
                if any(each.requires_grad for each in container.parameters()):
                    self.job.record(_event(container, module, where, counts))
                del self.found[key]
        if not self.found:
            self.job.withdraw(self.within)


def _event(container: Any, module: str, where: tuple[str, int], counts: list[int]) -> Repeated:
    kind, again = type(container).__name__, _again(container)
    return Repeated(
        path=where[0],
        line=where[1],
        times=max(counts),
        kinds=len(counts),
        places=len(container),
        parameters=sum(each.numel() for each in container.parameters()),
        module=module,
        layer=type(next(part for part in container if any(True for _ in part.parameters()))).__name__,
        container=kind,
        again=again if module == kind else f"{module}.{again}",
    )


def _repeats(parts: list[Any]) -> list[int]:
    """How often each part with weights is repeated at one distance, for those that are."""
    found = []
    for part in {id(each): each for each in parts}.values():
        at = [number for number, each in enumerate(parts) if each is part]
        distances = {after - before for before, after in pairwise(at)}
        if len(distances) == 1 and any(True for _ in part.parameters()):
            found.append(len(at))
    return found


def _again(container: Any) -> str:
    """The name of the first place at which a part with weights stands for the second time."""
    seen: set[int] = set()
    for name, part in container._modules.items():
        if id(part) in seen and any(True for _ in part.parameters()):
            return str(name)
        seen.add(id(part))
    return ""


def _multiplied(job: Job, frame: FrameType) -> int:
    """The line, nearest to where FRAME is, that multiplies a list, or fills one with the same name; 0 without any.

    Where the function of FRAME has none, the only multiplied list of its file is meant.
    """
    lines = _lines(job.written.tree_of(frame.f_code), _multiplies)
    if lines:
        return min(lines, key=lambda line: (line > frame.f_lineno, abs(line - frame.f_lineno)))
    elsewhere = _lines(job.written.file_of(frame.f_code), _multiplies_list)
    return elsewhere[0] if len(elsewhere) == 1 else 0


def _lines(tree: ast.AST | None, wanted: Any) -> list[int]:
    return [getattr(node, "lineno", 0) for node in ast.walk(tree) if wanted(node)] if tree is not None else []


def _multiplies_list(node: ast.AST) -> bool:
    """Whether a list of things, not of numbers, is multiplied."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)):
        return False
    lists = [side for side in (node.left, node.right) if isinstance(side, (ast.List, ast.Tuple))]
    return any(not isinstance(each, ast.Constant) for side in lists for each in side.elts)


def _multiplies(node: ast.AST) -> bool:
    if _multiplies_list(node):
        return True
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        bound = {each.id for part in node.generators for each in ast.walk(part.target) if isinstance(each, ast.Name)}
        return isinstance(node.elt, ast.Name) and node.elt.id not in bound
    return isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) == "repeat"
