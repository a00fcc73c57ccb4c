"""A program under way: where it stands, what has happened, and which way it takes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import process_time
from typing import Self, TypeVar

from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.autograd import Gradient, GraphNode, Parameter, Tensor
from torchtriage.examine.source.execution.binding import ENVIRONMENT
from torchtriage.examine.source.execution.conditions import Takes
from torchtriage.examine.source.execution.frames import Break, Continue, File, Frame, Raised, Return, TooLong
from torchtriage.examine.source.execution.frameworks import Frameworks
from torchtriage.examine.source.execution.loops import Loop
from torchtriage.examine.source.execution.lore import FUNCTION
from torchtriage.examine.source.execution.ranks import Certainty, Guard
from torchtriage.examine.source.execution.values import (
    OUTSIDE,
    Function,
    Object,
    Spot,
    Unknown,
    Value,
)
from torchtriage.examine.source.linked import Links

MOST = 60_000
"""Expressions and statements of one execution: about half a second. Projects of a few files need a tenth to a third."""
SECONDS = 2.0
"""Of CPU time: steps on long lists may each take a millisecond."""
NO_GENERATOR = 1_000
E = TypeVar("E", bound=events.Event)


class Executor(Frameworks):
    """One execution of a file as the program, on one choice at conditions of which nothing is known."""

    def __init__(self, path: str, tree: ast.Module, links: Links, *, takes: Takes) -> None:
        """TAKES: whether conditions that cannot be known, and guard nothing, hold."""
        self.links, self.takes = links, takes
        self.file = File(path, Path(path) if links.own is not None else None)
        self._tree = tree
        self.files: dict[Path, File] = {}
        self.outside, self.worker, self.is_grad = NO_GENERATOR, None, True
        self.is_apart = False
        self.endless: dict[int, bool] = {}
        """Of each loop, by its node, whether it has no known end."""
        self.totals: dict[int, int] = {}
        """Of loops over what is known, by their node, the number of iterations."""
        self.loop_nodes: dict[int, ast.AST] = {}
        """By identity, as events name their loops."""
        self.registered, self.growing = [], {}
        self.start(path)

    def start(self, path: str, *, steps: int = 0, most: int = MOST) -> None:
        """Forgets what an execution has come to, and begins in PATH after STEPS of the MOST that it may take."""
        self._before = steps
        self.events: list[events.Event] = []
        self.loops: list[Loop] = []
        self.guards: list[Guard] = []
        self.paths, self.stack = [path], list[Function]()
        self.under: list[Object] = []
        self.called: list[Object] = []
        self.under_call: list[tuple[str, ast.AST]] = []
        self.entered: set[int] = set()
        """Functions of the project that have been called."""
        self.visited: dict[int, Function] = {}
        """Those that this execution has called."""
        self.blind: set[str] = set()
        """Names of methods that were called on things that are not known: "step", "zero_grad" …"""
        self.escaped: dict[GraphNode, int] = {}
        """Operations whose results code that is not executed gets, and how many events there were by then."""
        self.decisions: dict[int, int] = {}
        """How often each condition came up that could not be known."""
        self.dropped: set[int] = set()
        self.applied: set[int] = set()
        self.optimizers: list[Object] = []
        self.wrappers: list[Object] = []
        self.readings, self.layers = [], {}
        self.tried = 0
        """How many `try` with handlers are under way."""
        self.age, self.region = 0, OUTSIDE
        self.awaited, self.began, self.is_unsynced, self.asks_rank = 0, 0, False, False
        self.outermost: Spot | None = None
        self.steps, self.most, self._began = steps, most, process_time()
        self.is_finished = False

    def execute(self, name: str = "__main__") -> Self:
        """The code of the file, as the program or as a module with another NAME."""
        self.file.values["__name__"] = name

        def work() -> None:
            self.run(self._tree.body, Frame(self.file, self.file.values))
            self.read_by_workers(self._tree)

        self.follow(work)
        return self

    def follow(self, work: Callable[[], Value]) -> None:
        """Does WORK, and knows then whether it has come to its end."""
        self.is_finished = False
        try:
            work()
        except (TooLong, RecursionError):
            return
        except (Raised, Return, Break, Continue):
            pass
        self.is_finished = True

    @property
    def is_in_model(self) -> bool:
        return bool(self.under) or self.is_in_function

    @property
    def is_in_function(self) -> bool:
        return any(each.owner is not None and FUNCTION in each.owner.externals for each in self.stack)

    @property
    def is_around_training(self) -> bool:
        return bool(self.loops) and self.loops[-1].holds_training

    @property
    def is_repeated(self) -> bool:
        return any(each.is_endless for each in self.loops)

    def goes_on(self, loop: Loop) -> bool:
        goes_on = loop.goes_on(self.events, is_late=self.steps - self._before > (self.most - self._before) // 2)
        self.age += loop.trains
        return goes_on

    # bookkeeping

    def count(self) -> None:
        self.steps += 1
        if self.steps > self.most or (self.steps % 1000 == 0 and process_time() - self._began > SECONDS):
            raise TooLong

    @property
    def turn(self) -> tuple[tuple[int, int], ...]:
        return tuple((id(each.node), each.count) for each in self.loops)

    def events_of(self, kind: type[E]) -> list[E]:
        return [each for each in self.events if isinstance(each, kind)]

    def spot(self, node: ast.AST) -> Spot:
        return Spot(self.paths[-1], node, tuple(self.under_call))

    def happen(self, event: events.Event) -> None:
        event.loops = self.turn
        event.guards, event.is_tried, event.region = tuple(self.guards), self.tried > 0, self.region
        self.events.append(event)

    def set_environment(self, entries: Mapping[Value, Value], node: ast.AST) -> None:
        for name, value in entries.items():
            self.happen(events.Setting(self.spot(node), f"{ENVIRONMENT}.{name}", value))

    def handled(self, silent: ast.AST | None) -> Callable[[], None]:
        begun = len(self.events)

        def leave() -> None:
            trains = any(isinstance(each, events.Backward) for each in self.events[begun:])
            if silent is not None and trains and self.loops:
                self.happen(events.Silence(self.spot(silent)))

        return leave

    def note_period(self, number: int) -> None:
        for each in self.loops if not (self.loops and self.loops[-1].is_endless) else ():
            each.period = max(each.period, number)  # within a loop over batches it is one of batches, not of epochs

    def note_count(self, number: int) -> None:
        for each in self.loops[-1:]:
            each.counted = max(each.counted, number)

    @contextmanager
    def guard(self, node: ast.stmt | ast.expr, way: bool, certainty: Certainty = "rank") -> Iterator[None]:
        self.guard_rest(node, way, certainty)
        depth = len(self.guards)
        try:
            yield
        finally:
            del self.guards[depth - 1 :]

    def guard_rest(self, node: ast.stmt | ast.expr, way: bool, certainty: Certainty = "rank") -> None:
        self.guards.append(Guard(node.lineno, way, len(self.under_call), certainty))

    @contextmanager
    def loop(self, node: ast.AST) -> Iterator[Loop]:
        made = Loop(node, len(self.loops), len(self.events))
        self.loop_nodes[id(node)] = node
        self.loops.append(made)
        try:
            yield made
        finally:
            self.endless[id(node)] = self.endless.get(id(node), False) or made.is_endless
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
            each = (each.module or each) if isinstance(each, Unknown) else each
            if isinstance(each, Object):
                each.has_escaped = True
                waiting += [*each.values.values(), *each.state.values()]
                if each.kind in ("module", "wrapper"):
                    self.blur(self.parameters(each))
                elif each.kind == "optimizer":
                    self.blur(self.optimized(each))
            elif isinstance(each, Tensor):
                self._escape_tensor(each)
            elif isinstance(each, dict):
                waiting += each.values()
            elif isinstance(each, list | tuple | set):
                waiting += each

    def _escape_tensor(self, held: Tensor) -> None:
        held.has_escaped = True
        if held.grad_fn is not None:
            self.escaped[held.grad_fn] = len(self.events)
        if held.graph and not isinstance(held, Parameter):
            self.blur(held.graph)

    def blur(self, parameters: Iterable[Parameter] | None) -> None:
        if parameters is None:
            self.blind.add("backward")
            return
        for each in parameters:
            each.is_gradient_known, each.grad = False, Gradient()
