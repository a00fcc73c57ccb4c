"""An executor that also is the caller of what nobody in sight calls: a training step, an engine, a model."""

from __future__ import annotations

import ast
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from copy import copy

from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.autograd import Parameter, Tensor
from torchtriage.examine.source.execution.calls import REST
from torchtriage.examine.source.execution.conditions import Takes
from torchtriage.examine.source.execution.entries import MOST, Entries, is_module, is_of_autograd, share
from torchtriage.examine.source.execution.executor import Executor
from torchtriage.examine.source.execution.frameworks import LIGHTNING
from torchtriage.examine.source.execution.graphs import tensors_in
from torchtriage.examine.source.execution.inputs import tensors
from torchtriage.examine.source.execution.instances import is_foreign
from torchtriage.examine.source.execution.values import (
    OPAQUE,
    OVER,
    Answer,
    Class,
    Endless,
    Function,
    Member,
    Object,
    Unknown,
    Value,
)
from torchtriage.examine.source.linked import Links

MOST_UNSEEN = 25_000
"""Steps of all functions of one file together that nothing in sight calls, in one of their executions."""
EACH_UNSEEN = 6_000
"""Of one of them: a large network is made in a few thousand."""
HELD = 500
"""Things that a file holds by name, and in lists and dicts, that are looked at."""
YIELDED = 12
"""Elements that a generator is asked for where nobody in sight asks: one that goes over a loader ends by itself."""
UPDATES = frozenset({"step", "zero_grad", "unscale_", "update"})
"""What an unseen caller may do in between."""
Entry = tuple[int, int]
"""A function or class, and its method at which an execution begins or 0, by their nodes."""


class UnseenCaller(Executor):
    """Executes a file, and then by itself each function and class that nothing in sight calls or makes."""

    def __init__(self, path: str, tree: ast.Module, links: Links, *, takes: Takes) -> None:
        super().__init__(path, tree, links, takes=takes)
        self.unseen, self.share = 0, EACH_UNSEEN
        """The steps that such functions have taken together, and those that one may take."""
        self.caller: Entries | None = None
        self.earlier: Sequence[events.Event] = ()
        """What has happened at the top level of the file, where a function of it is executed by itself."""
        self.entry: Function | Class | None = None
        """What it begins with, where that is no program."""
        self.is_for_each_batch = False
        """Whether that is called once for each batch."""
        self.is_called_by_base = False
        """Whether it begins with a method that a class out of sight may call."""
        self.first = 0
        """The event at which the function began that is executed by itself; its object was made before."""
        self.entered_at = 0
        """How many events there were when it was called first."""
        self.receiver: Object | None = None
        """Whose method is executed by itself."""
        self.returned: Value = None
        """What it gives back."""
        self.handed: list[Value] = []
        """What the caller gets that is not in sight."""

    # where it begins

    def begin(self, entries: Entries, wanted: Container[Entry] | None = None) -> Iterator[tuple[Entry, UnseenCaller]]:
        """One execution for each function of the file that nothing in it calls, or for those WANTED; then one for each
        method that trains and that no execution has come to: `update` and `step` are methods of many things.
        """
        entered, done = set(self.entered), set[Entry]()
        for key, made in self._begin(entries, wanted):
            entered |= made.entered
            done.add(key)
            yield key, made
        for cls, method in self._late_methods(entries, entered):
            key = id(cls.node), id(method.node)
            if key in done or (wanted is not None and key not in wanted) or id(method.node) in entered:
                continue
            made = self._execute_apart(entries, cls, method)
            entered |= made.entered
            if made.events_of(events.Backward):
                yield key, made

    def _begin(self, entries: Entries, wanted: Container[Entry] | None) -> Iterator[tuple[Entry, UnseenCaller]]:
        """Modules come last, the containers first: what they go forward through is not executed again by itself."""
        registered = (each for each in self.registered if id(each.node) in entries.scopes)
        found = [*entries.found(self.file.values, self.paths[0], self.entered), *registered][:MOST]
        modules = [each for each in found if isinstance(each, Class) and is_module(each)]
        self.share = max(EACH_UNSEEN, MOST_UNSEEN // max(1, len(found)))
        covered, reached, done = set(self.entered), set(self.entered), set[Entry]()
        ordered = [*(each for each in found if each not in modules), *reversed(modules)]
        pairs = [(entry, method) for entry in ordered for method in self._methods(entries, entry)]
        for entry, method in sorted(pairs, key=lambda each: each[0] in modules and each[1] is not None):
            key = id(entry.node), id(method.node) if method is not None else 0
            done.add(key)
            forward = entry.method("forward") if method is None and isinstance(entry, Class) else None
            is_covered = forward is not None and id(forward.original.node) in covered
            if key in wanted if wanted is not None else not is_covered:
                made = self._execute_apart(entries, entry, method)
                covered |= made.entered if forward is not None else set()
                reached |= made.entered if method is not None or isinstance(entry, Function) else set()
                yield key, made
        classes = [each for each in found if isinstance(each, Class)]
        for cls, method in self._unreached_methods(entries, classes, reached if wanted is None else set()):
            key = id(cls.node), id(method.node)
            if key not in done and (wanted is None or key in wanted):
                yield key, self._execute_apart(entries, cls, method)

    def _unreached_methods(
        self, entries: Entries, classes: list[Class], reached: set[int]
    ) -> Iterator[tuple[Class, Function]]:
        """The outermost methods of CLASSES of which none was REACHED: calls of their names mean other classes."""
        for cls in classes:
            if not is_of_autograd(cls) and reached.isdisjoint(entries.nodes(cls)):
                outer = entries.outermost(cls)  # the forward pass of a module was tried out
                yield from ((cls, each) for each in outer if each.name != "forward" or not is_module(cls))

    def _late_methods(self, entries: Entries, entered: set[int]) -> Iterator[tuple[Class, Function]]:
        """The methods of the classes of the file, also of those that others inherit from, but for those ENTERED."""
        entries.is_strict = False
        found = [*entries.found(self.file.values, self.paths[0], entered)][:MOST]
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

    def _execute_apart(
        self, entries: Entries, entry: Function | Class, method: Function | None = None, *, is_repeated: bool = False
    ) -> UnseenCaller:
        """An execution of ENTRY, or of the METHOD of a class, that begins where the code of the file has ended.

        is_repeated: for one batch after the other.
        """
        made = copy(self)
        made.start(self.paths[0], steps=self.unseen, most=min(self.unseen + self.share, MOST_UNSEEN))
        made.earlier, made.caller, made.entry, made.is_apart = self.events, entries, entry, True
        made.is_called_by_base = method is not None and isinstance(entry, Class) and _is_foreign(entry)
        made.is_for_each_batch, made.first, made.handed, made.receiver = is_repeated, 0, [], None

        def work() -> None:
            made._enter(entries, entry, method)
            made.read_by_workers(entry.node)

        made.follow(work)
        self.unseen = made.steps
        if made.is_finished and not is_repeated and made._is_training_step:
            return self._execute_apart(entries, entry, method, is_repeated=True)
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
        if not self.is_for_each_batch:
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
            given = self._arguments(entries, entry)
            self._share(given)
            self.is_grad = not entries.is_without_grad(entry)
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
        given = self._fill_annotated(first, entries.arguments(first, skip=1)) if first is not None else {}
        self._share(given)
        receiver = self.call(entry, (), given, node)
        if not isinstance(receiver, Object):
            return
        if is_module(entry) and method is None and forward is not None:
            self._try_forward(entries, entry, receiver, forward)
        elif method is not None and method.name == "training_step" and _is_propagated(entry, method):
            self.fit(receiver, (), {}, node)
        elif method is not None:
            inside = self._arguments(entries, method, skip=0 if method.kind == "static" else 1)
            self._share({**given, **inside})
            self.first, self.receiver = len(self.events), receiver
            self.blind |= {"step"} & entries.names_called(entry, method)  # by whom the caller may step
            called = self.bound(receiver, method)
            self._return_to_caller(self._for_each_batch(lambda: self.call(called, (), inside, node), node), node)
            self._hand_back(receiver)

    def _drain(self, value: Value, node: ast.AST) -> Value:
        """VALUE, and of a generator or a context manager what it does when it is gone through."""
        if isinstance(value, Endless):
            self.blind |= UPDATES  # who asks for the elements may step in between
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

    def _fill_annotated(self, function: Function, given: dict[str, Value]) -> dict[str, Value]:
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

    def _arguments(self, entries: Entries, function: Function, *, skip: int = 0) -> dict[str, Value]:
        """What FUNCTION is given; its options too, unless conditions that cannot be known do not hold."""
        if entries.options(function):
            self.decisions[id(function.node)] = 1
        found = entries.arguments(function, skip=skip, has_options=self.takes != "never")
        for wanted in (*function.node.args.posonlyargs, *function.node.args.args)[skip:]:
            cls = entries.class_of(function, wanted) if found[wanted.arg] is not None else None
            if cls is not None:
                found[wanted.arg] = self._example(entries, cls)
        return self._fill_annotated(function, found)

    def _example(self, entries: Entries, cls: Class) -> Value:
        """A model of the class CLS of the project, in a mode that is not known."""
        first = cls.method("__init__")
        made = self.call(cls, (), entries.arguments(first, skip=1) if first is not None else {}, cls.node)
        for each in self.modules(made) if isinstance(made, Object) else ():
            each.state |= {"training": None, "is_given": True, "born": -1}
        return made

    def _try_forward(self, entries: Entries, entry: Class, model: Object, forward: Function) -> None:
        """What happens with MODEL, an object of ENTRY, in its FORWARD; by itself where what is wrapped around it is too
        much to be followed, as the hooks of a library are.
        """
        own = forward.original
        if entries.options(own):
            self.decisions[id(own.node)] = 1
        inputs = tensors(own, has_options=self.takes in ("always", "else"))
        self._try_out(model, inputs, entry.node)
        if own is not forward and id(own.node) not in self.visited and entry.namespace.get("forward") is forward:
            entry.namespace["forward"] = own
            self._try_out(model, inputs, entry.node)
            entry.namespace["forward"] = forward

    def _try_out(self, model: Object, given: dict[str, Value], node: ast.AST) -> None:
        """What a training does with MODEL at least: it is moved, goes forward and back, and is evaluated."""
        given = {**given, REST: Unknown(REST)}
        self.call(self.attribute(model, "to", node), (Unknown("a device", is_plain=True),), {}, node)
        before = len(self.events)
        output = self.call(model, (), given, node)
        if any(isinstance(each, events.Backward) for each in self.events[before:]):
            return  # a trainer that is a module: its forward() trains
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
        self._hand_back(self._drain(value, node))
        is_made_here = isinstance(value, Function) and id(value.node) not in self.entered
        if not is_made_here or self.caller is None or id(value.node) not in self.caller.scopes:
            return
        given = self.caller.arguments(value)
        self._share(given)
        self.is_for_each_batch = True
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

    def missing_attribute(self, value: Object, name: str, node: ast.AST) -> Value:
        """An attribute that another class assigns, or nobody in sight: a thing of the role that it plays."""
        if self.caller is None or not self.stack or not isinstance(node, ast.Attribute) or value.cls is None:
            return super().missing_attribute(value, name, node)
        scope = self.caller.scopes.get(id(self.stack[-1].node))
        made = self.caller.of_role(node, scope, self.spot(node))
        if made is None:
            return super().missing_attribute(value, name, node)
        value.values[name] = made
        self._share(value.values)
        return made

    def assume_role(self, value: Value, target: ast.expr) -> Value:
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


def _is_propagated(cls: Class, step: Function) -> bool:
    """Whether Lightning goes back through the loss that STEP, of CLS, returns: it does not do so itself."""
    called = (node.func for node in ast.walk(step.node) if isinstance(node, ast.Call))
    goes_back = any(isinstance(each, ast.Attribute) and each.attr.endswith("backward") for each in called)
    return LIGHTNING in cls.externals and not goes_back


def _is_foreign(cls: Class) -> bool:
    """Whether CLS inherits from a class out of sight, which may call its methods."""
    return not cls.is_known or any(map(is_foreign, cls.externals))
