"""A program under way: where it stands, what has happened, and which way it takes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import process_time
from typing import Literal

from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.frames import Break, Continue, File, Frame, Raised, Return, TooLong
from torchtriage.examine.source.execution.frameworks import Frameworks
from torchtriage.examine.source.execution.loops import Loop
from torchtriage.examine.source.execution.statements import leaves
from torchtriage.examine.source.execution.values import (
    Function,
    Gradient,
    Object,
    Parameter,
    Spot,
    Tensor,
    Unknown,
    Value,
)
from torchtriage.examine.source.linked import Links

MOST = 60_000
"""Expressions and statements of one execution: about half a second. Projects of a few files need a tenth to a third."""
SECONDS = 2.0
"""Of CPU time: steps on long lists may each take a millisecond."""
NO_GENERATOR = 1_000
Takes = Literal["always", "never", "once"]


class Executor(Frameworks):
    """One execution of a file as the program, on one choice at conditions of which nothing is known."""

    def __init__(self, path: str, tree: ast.Module, links: Links, *, takes: Takes) -> None:
        """TAKES: whether conditions that cannot be known, and guard nothing, hold."""
        self.links, self.takes = links, takes
        self.events: list[events.Event] = []
        self.loops: list[Loop] = []
        self.outside = NO_GENERATOR
        self.dropped: set[int] = set()
        self.applied: set[int] = set()
        self.under_call: list[tuple[str, ast.AST]] = []
        self.paths = [path]
        self.is_grad = True
        self.under: list[Object] = []
        self.called: list[Object] = []
        self.layers = {}
        self.age, self.autocast = 0, ""
        self.blind: set[str] = set()
        """Names of methods that were called on things that are not known: "step", "zero_grad" …"""
        self.is_finished = False
        self.guards: list[tuple[int, bool]] = []
        self.optimizers: list[Object] = []
        self.wrappers: list[Object] = []
        self._steps, self._began = 0, process_time()
        self.decisions: dict[int, int] = {}
        """How often each condition came up that could not be known."""
        self.files: dict[Path, File] = {}
        self.stack: list[Function] = []
        self.file = File(path, Path(path) if links.own is not None else None)
        self._tree = tree

    def execute(self) -> Executor:
        self.file.values["__name__"] = "__main__"
        try:
            self.run(self._tree.body, Frame(self.file, self.file.values))
        except (TooLong, RecursionError):
            return self
        except (Raised, Return, Break, Continue):
            pass
        self.is_finished = True
        return self

    @property
    def is_around_training(self) -> bool:
        return bool(self.loops) and self.loops[-1].holds_training

    @property
    def is_repeated(self) -> bool:
        return any(each.is_endless for each in self.loops)

    def goes_on(self, loop: Loop) -> bool:
        happened = self.events[loop.first :]
        self.age += any(isinstance(each, events.Backward) for each in happened)
        return loop.goes_on(happened)

    # bookkeeping

    def count(self) -> None:
        self._steps += 1
        if self._steps > MOST or (self._steps % 1000 == 0 and process_time() - self._began > SECONDS):
            raise TooLong

    def spot(self, node: ast.AST) -> Spot:
        return Spot(self.paths[-1], node, tuple(self.under_call))

    def happen(self, event: events.Event) -> None:
        event.loops = tuple((id(each.node), each.count) for each in self.loops)
        event.guards = tuple(self.guards)
        self.events.append(event)

    def decide(self, node: ast.AST, value: Value, body: list[ast.stmt]) -> bool:
        times = self.decisions.get(id(node), 0)
        self.decisions[id(node)] = times + 1
        is_option = isinstance(value, Unknown) and value.is_option
        holds = self.takes == "always" or (self.takes == "once" and times == 0 and not is_option)
        if body and leaves(body):  # `if step % 500: continue` holds back what comes now and then; others are guards
            return not holds and isinstance(value, Unknown) and value.why == "a period"
        return holds

    def handled(self, silent: ast.ExceptHandler | None) -> Callable[[], None]:
        begun = len(self.events)

        def leave() -> None:
            trains = any(isinstance(each, events.Backward) for each in self.events[begun:])
            if silent is not None and trains and self.loops:
                self.happen(events.Silence(self.spot(silent), silent))

        return leave

    def note_period(self, number: int) -> None:
        for each in self.loops if not (self.loops and self.loops[-1].is_endless) else ():
            each.period = max(each.period, number)  # within a loop over batches it is one of batches, not of epochs

    @contextmanager
    def guard(self, node: ast.If, way: bool) -> Iterator[None]:
        self.guard_rest(node, way)
        depth = len(self.guards)
        try:
            yield
        finally:
            del self.guards[depth - 1 :]

    def guard_rest(self, node: ast.If, way: bool) -> None:
        self.guards.append((node.lineno, way))

    @contextmanager
    def loop(self, node: ast.AST) -> Iterator[Loop]:
        made = Loop(node, len(self.loops), len(self.events))
        self.loops.append(made)
        try:
            yield made
        finally:
            if made in self.loops:  # not where a generator is dropped in the middle of its loop
                self.loops.remove(made)

    def escape(self, *values: Value) -> None:
        """Code that is not executed gets VALUES: what they lead to may be changed by it."""
        waiting, seen = list(values), set[int]()
        while waiting:
            each = waiting.pop()
            if id(each) in seen:
                continue
            seen.add(id(each))
            if isinstance(each, Object):
                each.has_escaped = True
                waiting += [*each.values.values(), *each.state.values()]
                if each.kind in ("module", "wrapper"):
                    self.blur(self.parameters(each))
                elif each.kind == "optimizer":
                    self.blur(self.optimized(each))
            elif isinstance(each, Tensor):
                each.has_escaped = True
                if each.graph and not isinstance(each, Parameter):
                    self.blur(each.graph)
            elif isinstance(each, dict):
                waiting += each.values()
            elif isinstance(each, list | tuple | set):
                waiting += each

    def blur(self, parameters: Iterable[Parameter] | None) -> None:
        if parameters is None:
            self.blind.add("backward")
            return
        for each in parameters:
            each.is_gradient_known, each.grad = False, Gradient()
