"""What a run writes down about graphs that backward was told to retain."""

from __future__ import annotations

import ast
import weakref
from typing import TYPE_CHECKING, Any

from .events import RetainedGraph
from .graphs import nodes_below

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

_AT_ONCE = 16  # backward passes of a line that are looked at in the first steps
_LOOKS = 48  # and in all: every node of the graph is followed
_SITES = 16  # lines that retain a graph, of which notes are kept
_TIMES = frozenset({16, 32, 48})


def retained(job: Job) -> None:
    """Backward passes with retain_graph, and whether anything ever went through their graphs again."""
    job.orderly()
    watch = _Retained(job)
    job.listen(watch.backwarded, watch.iterated, watch.ending)


class _Site:
    """One line that retains a graph. others: lines of its function that call backward too, not seen at work so far.

    looked, idle: graphs that were followed, and those that were let go before anything went through them again.
    """

    def __init__(self, job: Job, where: tuple[str, int]) -> None:
        self.path, self.line = where
        self.looked = self.idle = 0
        self.needed = False
        frame = job.frame()
        calls = _calls(job.written.tree_of(frame.f_code)) if frame is not None else []
        self.asks = any(name == "grad" for name, _ in calls)
        self.others = {line for name, line in calls if name == "backward" and line != self.line}


class _Used:
    """Called when a backward reaches one of the nodes that it hangs on; it lives as long as any of them."""

    def __init__(self, site: _Site) -> None:
        self.site = site

    def __call__(self, _gradients: Any) -> None:
        self.site.needed = True


class _Retained:
    def __init__(self, job: Job) -> None:
        self.job = job
        self.sites: dict[tuple[str, int], _Site] = {}
        self.waiting: list[tuple[_Site, Any]] = []

    def backwarded(self, roots: Any) -> None:
        if not (self.job.retaining or self.sites):
            return
        where = self.job.caller()
        for site in self.sites.values():
            if site.path == where[0]:
                site.others.discard(where[1])
        if self.job.retaining:
            self.follow(where, roots)

    def follow(self, where: tuple[str, int], roots: Any) -> None:
        site = self.sites.get(where)
        if site is None:
            if len(self.sites) >= _SITES or not where[1]:
                return
            site = self.sites[where] = _Site(self.job, where)
        enough = _AT_ONCE if self.job.governor.watched < _AT_ONCE * 4 else _LOOKS
        if site.needed or site.looked >= enough:
            return
        site.looked += 1
        used = _Used(site)
        for root in roots:
            for node in nodes_below(root.grad_fn) if root.grad_fn is not None else ():
                if not hasattr(node, "variable"):  # the leaves' own nodes belong to all graphs
                    node.register_prehook(used)
        self.waiting.append((site, weakref.ref(used)))

    def iterated(self, _step: int) -> None:
        if self.waiting:
            waiting, self.waiting = self.waiting, []
            for site, used in waiting:
                if used() is not None:
                    self.waiting.append((site, used))
                elif not site.needed:
                    site.idle += 1
                    if site.idle in _TIMES:
                        self.tell(site)

    def tell(self, site: _Site) -> None:
        told = RetainedGraph(
            path=site.path, line=site.line, looked=site.looked, idle=site.idle, needed=site.needed,
            maybe=site.asks or bool(site.others),
        )  # fmt: skip
        self.job.record(told)

    def ending(self) -> None:
        for site in self.sites.values():
            self.tell(site)


def _calls(tree: ast.AST | None) -> list[tuple[str, int]]:
    """The name and line of every call of backward or grad in a function."""
    found = []
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", None) or getattr(node.func, "id", "")
            if name in {"backward", "grad"}:
                found.append((name, node.lineno))
    return found
