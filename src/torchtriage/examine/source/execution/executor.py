"""A program under way: where it stands, what has happened, and which way it takes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from time import process_time
from typing import Literal, TypeVar

from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.binding import ENVIRONMENT
from torchtriage.examine.source.execution.calls import REST, is_foreign
from torchtriage.examine.source.execution.entries import (
    MOST as MOST_ENTRIES,
)
from torchtriage.examine.source.execution.entries import (
    Entries,
    is_module,
    is_of_autograd,
    share,
    tensors,
)
from torchtriage.examine.source.execution.frames import Break, Continue, File, Frame, Raised, Return, TooLong
from torchtriage.examine.source.execution.frameworks import LIGHTNING, Frameworks
from torchtriage.examine.source.execution.loops import Loop
from torchtriage.examine.source.execution.modules import OPAQUE
from torchtriage.examine.source.execution.ranks import Certainty, Guard
from torchtriage.examine.source.execution.statements import leaves
from torchtriage.examine.source.execution.tensors import tensors_in
from torchtriage.examine.source.execution.values import (
    OUTSIDE,
    OVER,
    Answer,
    Class,
    Condition,
    Endless,
    Function,
    Gradient,
    Member,
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
MOST_UNSEEN = 25_000
"""Of all functions of one file together that nothing in sight calls, in one of their executions."""
EACH_UNSEEN = 6_000
"""Of one of them: a large network is made in a few thousand."""
SECONDS = 2.0
"""Of CPU time: steps on long lists may each take a millisecond."""
NO_GENERATOR = 1_000
HELD = 500
"""Things that a file holds by name, and in lists and dicts, that are looked at."""
YIELDED = 12
"""Elements that a generator is asked for where nobody in sight asks: one that goes over a loader ends by itself."""
_UPDATES = frozenset({"step", "zero_grad", "unscale_", "update"})
"""What an unseen caller may do in between."""
Entry = tuple[int, int]
E = TypeVar("E", bound=events.Event)
Takes = Literal["always", "never", "once"]


class Executor(Frameworks):
    """One execution of a file as the program, on one choice at conditions of which nothing is known."""

    tried = 0
    """How many `try` with handlers are under way."""
    first = 0
    """The event at which the function began that is executed by itself; its object was made before."""
    is_grad = True
    repeated: bool = False
    """Whether the function that an execution begins with is called once for each batch."""
    entry: Function | Class | None = None
    """What it begins with, where that is no program."""
    is_called_by_base: bool = False
    """Whether it begins with a method that a class out of sight may call."""
    returned: Value = None
    """What it gives back, where it begins with a function."""
    entered_at: int = 0
    """How many events there were when it was called first."""

    earlier: Sequence[events.Event] = ()
    """What has happened at the top level of the file, where a function of it is executed by itself."""

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
        self.under: list[Object] = []
        self.called: list[Object] = []
        self.endless: dict[int, bool] = {}
        """Of each loop, by its node, whether it has no known end."""
        self.totals: dict[int, int] = {}
        """Of loops over what is known, by their node, the number of iterations."""
        self.inside: dict[int, frozenset[int]] = {}
        """Of each loop, by its node, the nodes within it."""
        self.entered: set[int] = set()
        """Functions of the project that have been called."""
        self.visited: dict[int, Function] = {}
        """Those that this execution has called."""
        self.caller: Entries | None = None
        self.layers = {}
        self.age, self.region = 0, OUTSIDE
        self.blind: set[str] = set()
        """Names of methods that were called on things that are not known: "step", "zero_grad" …"""
        self.is_finished = False
        self.guards: list[Guard] = []
        self.awaited, self.is_unsynced = 0, False
        self.registered, self.asks_rank = [], False
        self.receiver: Object | None = None
        """Whose method is executed by itself."""
        self.handed: list[Value] = []
        """What the caller gets that is not in sight."""
        self.optimizers: list[Object] = []
        self.worker, self.readings = None, []
        self.wrappers: list[Object] = []
        self.steps, self.began, self._began = 0, 0, process_time()
        self.outermost: Spot | None = None
        self.most = MOST
        self.unseen, self.share = 0, EACH_UNSEEN
        """The steps of functions that nothing in sight calls."""
        self.decisions: dict[int, int] = {}
        """How often each condition came up that could not be known."""
        self.files: dict[Path, File] = {}
        self.stack: list[Function] = []
        self.file = File(path, Path(path) if links.own is not None else None)
        self._tree = tree

    def execute(self, name: str = "__main__") -> Executor:
        """The code of the file, as the program or as a module with another NAME."""
        self.file.values["__name__"] = name

        def work() -> None:
            self.run(self._tree.body, Frame(self.file, self.file.values))
            self.read_by_workers(self._tree)

        self._follow(work)
        return self

    def _follow(self, work: Callable[[], Value]) -> None:
        self.is_finished = False
        try:
            work()
        except (TooLong, RecursionError):
            return
        except (Raised, Return, Break, Continue):
            pass
        self.is_finished = True

    # functions that nothing in sight calls

    def begin(self, entries: Entries, wanted: Container[Entry] | None = None) -> Iterator[tuple[Entry, Executor]]:
        """One execution for each function of the file that nothing in it calls, or for those WANTED; then one for each
        method that trains and that no execution has come to: `update` and `step` are methods of many things.
        """
        entered, done = set(self.entered), set[Entry]()
        for key, made in self._begin(entries, wanted):
            entered |= made.entered
            done.add(key)
            yield key, made
        for cls, method in self._late(entries, entered):
            key = id(cls.node), id(method.node)
            if key in done or (wanted is not None and key not in wanted) or id(method.node) in entered:
                continue
            made = self._apart(entries, cls, method)
            entered |= made.entered
            if made.events_of(events.Backward):
                yield key, made

    def _begin(self, entries: Entries, wanted: Container[Entry] | None) -> Iterator[tuple[Entry, Executor]]:
        """Modules come last, the containers first: what they go forward through is not executed again by itself."""
        registered = (each for each in self.registered if id(each.node) in entries.scopes)
        found = [*entries.found(self.file.values, self.paths[0], self.entered), *registered][:MOST_ENTRIES]
        modules = [each for each in found if isinstance(each, Class) and is_module(each)]
        self.share = max(EACH_UNSEEN, MOST_UNSEEN // max(1, len(found)))
        covered, reached, done = set(self.entered), set(self.entered), set[Entry]()
        for entry in [*(each for each in found if each not in modules), *reversed(modules)]:
            for method in self._methods(entries, entry):
                key = id(entry.node), id(method.node) if method is not None else 0
                done.add(key)
                forward = entry.method("forward") if method is None and isinstance(entry, Class) else None
                is_covered = forward is not None and id(forward.node) in covered
                if key in wanted if wanted is not None else not is_covered:
                    made = self._apart(entries, entry, method)
                    made.is_called_by_base = method is not None and isinstance(entry, Class) and _is_foreign(entry)
                    covered |= made.entered if forward is not None else set()
                    reached |= made.entered if method is not None or isinstance(entry, Function) else set()
                    yield key, made
        classes = [each for each in found if isinstance(each, Class)]
        for cls, method in self._unreached(entries, classes, reached if wanted is None else set()):
            key = id(cls.node), id(method.node)
            if key not in done and (wanted is None or key in wanted):
                yield key, self._apart(entries, cls, method)

    def _unreached(self, entries: Entries, classes: list[Class], reached: set[int]) -> Iterator[tuple[Class, Function]]:
        """The outermost methods of CLASSES of which none was REACHED: calls of their names mean other classes."""
        for cls in classes:
            if not is_of_autograd(cls) and reached.isdisjoint(entries.nodes(cls)):
                yield from ((cls, each) for each in entries.outermost(cls))

    def _late(self, entries: Entries, entered: set[int]) -> Iterator[tuple[Class, Function]]:
        """The methods of the classes of the file, also of those that others inherit from, but for those ENTERED."""
        entries.is_strict = False
        found = [*entries.found(self.file.values, self.paths[0], entered)][:MOST_ENTRIES]
        classes = [each for each in found if isinstance(each, Class) and not is_of_autograd(each)]
        methods = [(cls, each) for cls in classes for each in entries.methods(cls, entered)]
        entries.is_strict = True
        yield from ((cls, each) for cls, each in methods if each.name not in ("forward", "__call__"))

    def _methods(self, entries: Entries, entry: Function | Class) -> list[Function | None]:
        """The methods of ENTRY at which an execution begins; None: it is tried out as a whole."""
        if isinstance(entry, Function) or is_of_autograd(entry):
            return [None]
        own = [each for each in entries.methods(entry, self.entered) if each.name != "forward"]
        return [None, *own] if is_module(entry) or not own else [*own]

    def _apart(
        self, entries: Entries, entry: Function | Class, method: Function | None = None, *, is_repeated: bool = False
    ) -> Executor:
        """An execution of ENTRY, or of the METHOD of a class, that begins where the code of the file has ended.

        is_repeated: for one batch after the other.
        """
        made = copy(self)
        made.earlier = self.events
        made.events, made.loops, made.guards, made.under, made.called = [], [], [], [], []
        made.tried, made.awaited, made.began, made.first, made.steps = 0, 0, 0, 0, self.unseen
        made.most = min(self.unseen + self.share, MOST_UNSEEN)
        made.region = OUTSIDE
        made.dropped, made.applied, made.blind, made.decisions = set(), set(), set(), {}
        made.under_call, made.stack, made.optimizers, made.wrappers, made.layers = [], [], [], [], {}
        made.paths, made.age, made.caller, made.entered, made.visited = list(self.paths[:1]), 0, entries, set(), {}
        made.readings, made.handed, made.receiver, made.asks_rank = [], [], None, False
        made.repeated, made.entry = is_repeated, entry

        def work() -> None:
            made._enter(entries, entry, method)
            made.read_by_workers(entry.node)

        made._follow(work)
        self.unseen = made.steps
        if made.is_finished and not is_repeated and made._is_training_step:
            return self._apart(entries, entry, method, is_repeated=True)
        return made

    @property
    def _is_training_step(self) -> bool:
        """Whether all that was trained is one batch: def train_step(self, x, y)."""
        trained = self.events_of(events.Backward)
        steps = self.events_of(events.OptimizerStep)
        inside = self.events[self.entered_at :]
        makes = any(isinstance(each, events.Made) and each.made.kind in ("optimizer", "scaler") for each in inside)
        return bool(trained and steps) and not makes and not any(each.loops for each in (*trained, *steps))

    def _for_each_batch(self, work: Callable[[], Value], node: ast.AST) -> Value:
        """WORK as often as a caller that trains does it: once for each batch."""
        self.entered_at = len(self.events)
        if not self.repeated:
            return work()
        value: Value = None
        with self.loop(node) as loop:
            loop.is_endless = True
            while self.goes_on(loop):
                value = work()
                for each in self.optimizers:  # which the caller may clear in between
                    self.blur(self.optimized(each))
        return value

    def _enter(self, entries: Entries, entry: Function | Class, method: Function | None) -> None:
        node = entry.node
        if isinstance(entry, Function):
            given = self._given(entries, entry)
            self._share(given)
            self._return_to_caller(self._for_each_batch(lambda: self.call(entry, (), given, node), node), node)
        elif is_of_autograd(entry):
            self._apply_once(entry)
        else:
            self._make_and_use(entries, entry, method)

    def _apply_once(self, entry: Class) -> None:
        """What an autograd function does with inputs of which only the kind is known."""
        forward = entry.method("forward")
        if forward is None:
            return
        skip = 1 if entry.method("setup_context") is None else 0
        rest, most = forward.node.args.vararg, len(forward.node.args.posonlyargs) + len(forward.node.args.args)
        several = (Unknown(rest.arg), Unknown(rest.arg)) if rest is not None else ()
        given = (*tensors(forward, skip).values(), *several)
        self.apply(entry, given, entry.node, most=None if rest is not None else most - skip)

    def _make_and_use(self, entries: Entries, entry: Class, method: Function | None) -> None:
        """An object of a class that nothing in sight makes, and its METHOD, or the forward pass of a module."""
        node, forward = entry.node, entry.method("forward")
        first = entry.method("__init__")
        given = self._typed(first, entries.arguments(first, skip=1)) if first is not None else {}
        self._share(given)
        receiver = self.call(entry, (), given, node)
        if not isinstance(receiver, Object):
            return
        if is_module(entry) and method is None and forward is not None:
            if entries.options(forward):
                self.decisions[id(forward.node)] = 1
            self._try_out(receiver, tensors(forward, has_options=self.takes == "always"), node)
        elif method is not None and method.name == "training_step" and _is_propagated(entry, method):
            self.fit(receiver, (), {}, node)
        elif method is not None:
            inside = self._given(entries, method, skip=0 if method.kind == "static" else 1)
            self._share({**given, **inside})
            self.first, self.receiver = len(self.events), receiver
            self.blind |= {"step"} & entries.names_called(entry, method)  # by whom the caller may step
            called = self.bound(receiver, method)
            self._return_to_caller(self._for_each_batch(lambda: self.call(called, (), inside, node), node), node)
            self._hand_back(receiver)

    def _drained(self, value: Value, node: ast.AST) -> Value:
        """VALUE, and of a generator or a context manager what it does when it is gone through."""
        if isinstance(value, Endless):
            self.blind |= _UPDATES  # who asks for the elements may step in between
            for number in range(YIELDED):
                made = value.make(number)
                if made is OVER:
                    break
                self._hand_back(made)
        elif isinstance(value, Object) and value.kind == "context" and "body" in value.state:
            leave, entered = self.enter(value, node)
            self._hand_back(entered)
            leave()
        return value

    def _typed(self, function: Function, given: dict[str, Value]) -> dict[str, Value]:
        """GIVEN, with an instance for each parameter of FUNCTION that is annotated with a model of the project, or with
        a data class: settings as they are by default.
        """
        wanted = function.node.args
        notes = {each.arg: each.annotation for each in (*wanted.posonlyargs, *wanted.args, *wanted.kwonlyargs)}
        for name, value in given.items():
            note = notes.get(name)
            is_open = type(value) is Unknown and not value.is_option
            if note is None or not (is_open or (isinstance(value, Object) and value.made == OPAQUE)):
                continue
            found = self.evaluate(note, function.frame)
            if isinstance(found, Class) and (found.fields is not None or is_module(found)):
                first, entries = found.method("__init__"), self.caller
                inside = entries.arguments(first, skip=1) if first is not None and entries is not None else {}
                given[name] = self.call(found, (), inside, function.node)
        return given

    def _given(self, entries: Entries, function: Function, *, skip: int = 0) -> dict[str, Value]:
        """What FUNCTION is given; its options too, unless conditions that cannot be known do not hold."""
        if entries.options(function):
            self.decisions[id(function.node)] = 1
        found = entries.arguments(function, skip=skip, has_options=self.takes != "never")
        for wanted in (*function.node.args.posonlyargs, *function.node.args.args)[skip:]:
            cls = entries.class_of(function, wanted) if found[wanted.arg] is not None else None
            if cls is not None:
                found[wanted.arg] = self._example(entries, cls)
        return self._typed(function, found)

    def _example(self, entries: Entries, cls: Class) -> Value:
        """A model of the class CLS of the project, in a mode that is not known."""
        first = cls.method("__init__")
        made = self.call(cls, (), entries.arguments(first, skip=1) if first is not None else {}, cls.node)
        for each in self.modules(made) if isinstance(made, Object) else ():
            each.state |= {"training": None, "is_given": True, "born": -1}
        return made

    def _try_out(self, model: Object, given: dict[str, Value], node: ast.AST) -> None:
        """What a training does with MODEL at least: it is moved, goes forward and back, and is evaluated."""
        given = {**given, REST: Unknown(REST)}
        self.call(self.attribute(model, "to", node), (Unknown("a device", is_plain=True),), {}, node)
        output = self.call(model, (), given, node)
        self.optimizers = []  # what the model itself keeps steps at other times
        result = next(tensors_in((output,)), None)
        if result is not None:
            self.backward(result, {}, node)
        for each in self.modules(model):
            each.state["training"] = False
        self.is_grad = False
        self.call(model, (), given, node)

    def _return_to_caller(self, value: Value, node: ast.AST) -> None:
        """The unseen caller gets VALUE; a function that was made for it, it calls."""
        self.returned = value
        self._hand_back(self._drained(value, node))
        is_made_here = isinstance(value, Function) and id(value.node) not in self.entered
        if not is_made_here or self.caller is None or id(value.node) not in self.caller.scopes:
            return
        given = self.caller.arguments(value)
        self._share(given)
        self.repeated = True
        self._for_each_batch(lambda: self.call(value, (), given, value.node), value.node)

    def _hand_back(self, value: Value) -> None:
        """The unseen caller may wait for a handle that it gets in VALUE."""
        self.handed.append(value)
        if isinstance(value, Answer) and value.part is not None and not self._is_held(value.part):
            self.note_answer(value, is_lost=True)
        waiting, seen = [value], set[int]()
        while waiting:
            each = waiting.pop()
            if id(each) in seen:
                continue
            seen.add(id(each))
            if isinstance(each, Object):
                each.has_escaped |= each.kind in ("handle", "profiler") and not each.state.get("is_over")
                waiting += each.values.values()
            elif isinstance(each, list | tuple | dict):
                waiting += each.values() if isinstance(each, dict) else each

    def _is_held(self, thing: Object) -> bool:
        """Whether the caller was given THING, or it is among the names of the file."""
        waiting: list[Value] = [*self.file.values.values(), self.receiver]
        seen = set[int]()
        while waiting and len(seen) < HELD:
            each = waiting.pop()
            if each is thing:
                return True
            if id(each) not in seen:
                seen.add(id(each))
                inside = each.values if isinstance(each, Object) else each if isinstance(each, dict) else {}
                waiting += [*inside.values(), *(each if isinstance(each, list | tuple) else ())]
        return bool(thing.state.get("is_given")) or thing.has_escaped

    def _share(self, given: Mapping[str, Value]) -> None:
        listed = [each if isinstance(each, list) else [each] for each in given.values()]
        things = [each for one in listed for each in one if isinstance(each, Object)]
        models = [each for each in things if each.kind in ("module", "wrapper")]
        optimizers = [each for each in things if each.kind == "optimizer"]
        self.wrappers += [each for each in things if each.kind == "wrapper" and each not in self.wrappers]
        self.optimizers += [each for each in optimizers if each not in self.optimizers]
        for each in models if len(models) > 1 else ():
            each.state["has_siblings"] = True
        share(models, optimizers, [each for model in models for each in self.parameters(model)])

    def trained_elsewhere(self) -> frozenset[Parameter]:
        """Those of the only optimizer, where that is given, too: `def update(self, loss)` of a trainer."""
        held = self.optimizers[0] if len(self.optimizers) == 1 else None
        return frozenset(self.optimized(held)) if held is not None and held.state.get("is_given") else frozenset()

    def missing(self, value: Object, name: str, node: ast.AST) -> Value:
        """An attribute that another class assigns, or nobody in sight: a thing of the role that it plays."""
        if self.caller is None or not self.stack or not isinstance(node, ast.Attribute) or value.cls is None:
            return super().missing(value, name, node)
        scope = self.caller.scopes.get(id(self.stack[-1].node))
        made = self.caller.of_role(node, scope, self.spot(node))
        if made is None:
            return super().missing(value, name, node)
        value.values[name] = made
        self._share(value.values)
        return made

    def named(self, value: Value, target: ast.expr) -> Value:
        """self.model = build(cfg).half(): what unknown code gives is a model where the name is used as one."""
        is_open = type(value) in (Unknown, Member) or (isinstance(value, Tensor) and value.is_open and not value.graph)
        is_option = isinstance(value, Unknown) and value.is_option
        if (
            self.caller is None
            or not self.stack
            or not is_open
            or is_option
            or not isinstance(target, ast.Name | ast.Attribute)
        ):
            return value
        scope = self.caller.scopes.get(id(self.stack[-1].node))
        made = self.caller.of_role(target, scope, self.spot(target))
        if made is not None and made.kind == "sampler":
            return made
        if made is None or made.kind != "module" or made.made != OPAQUE:
            return value
        spot = value.spot if isinstance(value, Tensor) and value.spot is not None else self.spot(target)
        format_ = value.format if isinstance(value, Tensor) else ""
        self.happen(events.Move(spot, made, format_, Unknown("a device")))  # whoever has built it has placed it
        return made

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

    def decide(self, node: ast.AST, value: Value, body: list[ast.stmt]) -> bool:
        times = self.decisions.get(id(node), 0)
        self.decisions[id(node)] = times + 1
        holds = self._holds(value, times)
        is_branch = len(body) > 1 and isinstance(body[-1], ast.Return) and body[-1].value is not None
        if body and leaves(body) and not is_branch:
            # `if step % 500: continue` holds back what comes now and then; others are guards
            return not holds and isinstance(value, Unknown) and value.why == "a period"
        return holds

    def _holds(self, value: Value, times: int) -> bool:
        """Whether the condition VALUE holds; one that came up TIMES before. `not x` is what x is not."""
        if isinstance(value, Unknown) and value.is_periodic and not isinstance(value, Condition):
            return (self.takes == "always" and self._is_in_period) or (self.takes == "once" and times == 0)
        if isinstance(value, Condition):
            found = [self._holds(each, times) for each in value.parts]
            return any(found) if value.op == "or" else not found[0] if value.op == "not" else all(found)
        is_option = isinstance(value, Unknown) and value.is_option
        holds = self.takes == "always" or (self.takes == "once" and times == 0 and not is_option)
        if isinstance(value, Member) and value.name == "training" and isinstance(value.receiver, Object):
            for each in self.modules(value.receiver):  # `if model.training:` of a model that is given in either mode
                each.state["training"] = holds
        return holds

    @property
    def _is_in_period(self) -> bool:
        """Whether what happens every so many batches does now: from the second one on; of epochs at each."""
        if not self.loops or self.loops[-1].holds_training:
            return True
        loop = self.loops[-1]
        inside = self.events[loop.first :]
        has_trained = any(isinstance(each, events.Backward) and len(each.loops) > loop.depth + 1 for each in inside)
        return has_trained or loop.count >= 1

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
        if id(node) not in self.inside:
            self.inside[id(node)] = frozenset(map(id, ast.walk(node)))
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


def _is_propagated(cls: Class, step: Function) -> bool:
    """Whether Lightning goes back through the loss that STEP, of CLS, returns: it does not do so itself."""
    called = (node.func for node in ast.walk(step.node) if isinstance(node, ast.Call))
    goes_back = any(isinstance(each, ast.Attribute) and each.attr.endswith("backward") for each in called)
    return LIGHTNING in cls.externals and not goes_back


def _is_foreign(cls: Class) -> bool:
    """Whether CLS inherits from a class out of sight, which may call its methods."""
    return not cls.is_known or any(map(is_foreign, cls.externals))
