"""Calls: functions and methods of the project, its classes, and what packages are asked for."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ClassVar

from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.attributes import CONTAINERS, FUNCTION
from torchtriage.examine.source.execution.configuration import optional
from torchtriage.examine.source.execution.frames import Frame, Return
from torchtriage.examine.source.execution.functions import Functions
from torchtriage.examine.source.execution.loops import Loop
from torchtriage.examine.source.execution.lore import kind_of, lore
from torchtriage.examine.source.execution.modules import is_module
from torchtriage.examine.source.execution.values import (
    OVER,
    Arguments,
    Class,
    Endless,
    External,
    Function,
    Keywords,
    Loaded,
    Method,
    Namespace,
    Object,
    Operation,
    Partial,
    Tensor,
    Unknown,
    Value,
    is_concrete,
)

DEEP = 40
"""Calls within calls."""
_SETTINGS = re.compile(r"(Config|Cfg|Args|Arguments|Options|Opts?|Settings|Params|Hparams|Flags)$", re.IGNORECASE)
_BLIND = frozenset(
    {"step", "zero_grad", "backward", "train", "eval", "update", "unscale_", "set_epoch", "wait", "seed"}
)
"""Methods whose calls on unknown things keep rules from saying that nothing calls them."""


class Calls(Functions):
    """The calls of an execution. under_call: the calls that led to where it is, the outermost first.

    blind: names of methods that were called on things that are not known.
    """

    under_call: list[tuple[str, ast.AST]]
    stack: list[Function]
    guards: list[tuple[int, bool]]
    blind: set[str]
    _calls: ClassVar[dict[type, Callable[..., Value]]] = {}

    def call(self, called: Value, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        self.count()
        work = self._calls.get(type(called))
        if work is not None:
            return work(self, called, arguments, keywords, node)
        return self.beyond(called, "", arguments, keywords)

    def _method(self, called: Method, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        is_forward = called.function.name == "forward" and is_module(called.receiver)
        if is_forward and called.receiver not in self.under and _is_by_name(node):
            self.happen(events.DirectForward(self.spot(node), called.receiver))
            return self.call_module(called.receiver, arguments, keywords, node)
        return self.call_function(called.function, (called.receiver, *arguments), keywords, node)

    def _package(self, called: External, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        return self.external(called.name, arguments, keywords, node)

    def _partial_call(self, called: Partial, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        return self.call(called.called, (*called.arguments, *arguments), {**called.keywords, **keywords}, node)

    def _operation(self, called: Operation, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        held, name = called.receiver, called.name
        if isinstance(held, Class):
            return self.apply(held, arguments, node)
        if isinstance(held, Tensor):
            return self.tensor_method(held, name, arguments, keywords, node)
        if isinstance(held, Object):
            found = self.operate(held, name, arguments, keywords, node)
            return found if found is not NotImplemented else self.beyond(held, name, arguments, keywords)
        if isinstance(held, CONTAINERS):
            if isinstance(held, list) and name == "append" and arguments and isinstance(arguments[0], Tensor):
                self.happen(events.Kept(self.spot(node), held, "", arguments[0]))
            return self.container_method(held, name, arguments, keywords, node)
        return self._method_of_rest(held, name, arguments, keywords, node)

    def _method_of_rest(self, held: Value, name: str, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        if isinstance(held, Namespace) and held.holds_settings:
            return self.settings_method(held, name, arguments, keywords)
        if isinstance(held, Loaded) and name in ("get", "pop") and arguments:
            return self.item(held, arguments[0], node)
        if name in _BLIND:
            self.blind.add(name)
        return self.beyond(held, name, arguments, keywords)

    def beyond(self, held: Value, name: str, arguments: Arguments, keywords: Keywords) -> Value:
        if name not in lore()["harmless"]["methods"]:
            self.escape(*arguments, *keywords.values())
            if isinstance(held, Object) and name and not held.kind:
                held.has_escaped = True
        return Unknown(name)

    def _called_object(self, called: Object, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        if called.kind == "grad_mode" and arguments and isinstance(arguments[0], Function):
            arguments[0].grad = called.state["enabled"]
            return arguments[0]
        own = called.method("__call__")
        if own is not None:
            return self.call_function(own, (called, *arguments), keywords, node)
        if is_module(called):
            return self.call_module(called, arguments, keywords, node)
        return self.beyond(called, "", arguments, keywords)

    def _instance(self, cls: Class, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        kinds = [kind_of(name) for name in cls.externals]
        kind = next((each for each in kinds if each), "")
        external = next((name for name in cls.externals if kind_of(name)), "")
        made = Object(kind, external, cls, self.spot(node), arguments, keywords)
        if not cls.is_known:
            made.has_escaped = True
        if cls.fields is not None:
            self._fill(made, cls, arguments, keywords, node)
        members = [each for each in cls.namespace.values() if isinstance(each, Object) and each.cls is cls]
        if members and len(arguments) == 1:  # Precision("bf16")
            mine = (each for each in members if is_concrete(arguments[0]) and each.values.get("value") == arguments[0])
            return next(mine, Unknown(cls.name))
        if FUNCTION in cls.externals:
            self.happen(events.FunctionInstance(self.spot(node)))
        first, late = cls.method("__init__"), cls.method("__post_init__")
        made.state["is_made"] = first is None
        if first is not None:
            self.call_function(first, (made, *arguments), keywords, node)
        elif kind == "optimizer":
            self.make_optimizer(made, node)
        elif kind == "module" and external in lore()["containers"]:
            made.state |= self.make_module(external, arguments, keywords, node).state
        if cls.fields is not None and late is not None:
            self.call_function(late, (made,), {}, node)
        return made

    def _fill(self, made: Object, cls: Class, arguments: Arguments, keywords: Keywords, node: ast.AST) -> None:
        """The fields of a data class."""
        holds_settings = _SETTINGS.search(cls.name) is not None
        for place, name in enumerate(cls.fields or ()):
            if name in keywords:
                value = keywords[name]
            elif place < len(arguments):
                value = arguments[place]
            else:
                value = cls.get(name, Unknown(name))
                if isinstance(value, Object) and value.kind == "field":
                    maker = value.keywords.get("default_factory")
                    value = (
                        value.keywords.get("default", Unknown(name))
                        if maker is None
                        else self.call(maker, (), {}, node)
                    )
            is_given = name in keywords or place < len(arguments)
            made.values[name] = optional(name, value) if holds_settings and not is_given else value

    def call_function(self, function: Function, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Value:
        if len(self.under_call) >= DEEP or self.stack.count(function) > 3:
            self.escape(*arguments, *keywords.values())
            return Unknown(function.name)
        values = self._bound_arguments(function, arguments, keywords)
        outer: Frame = function.frame
        frame = Frame(
            outer.file, values, None if outer.values is outer.file.values else outer, function, function.owner
        )
        before = self.is_grad, self.autocast
        if function.is_generator:
            body = self._suspended(function, frame, node)
            if function.kind == "context":
                return Object("context", state={"body": body})
            return self._streamed(body)
        with self._inside(function, node):
            if function.grad is not None:
                self.is_grad = function.grad
            if function.autocast is not None:
                self.autocast = function.autocast
            try:
                if isinstance(function.node, ast.Lambda):
                    return self.evaluate(function.node.body, frame)
                self.run(function.node.body, frame)
            except Return as given:
                return given.value
            finally:
                self.is_grad, self.autocast = before
        return None

    @contextmanager
    def _inside(self, function: Function, node: ast.AST) -> Iterator[None]:
        self.under_call.append((self.paths[-1], node))
        self.paths.append(function.frame.file.path)
        self.stack.append(function)
        guards = len(self.guards)
        try:
            yield
        finally:
            del self.guards[guards:]
            self.under_call.pop()
            self.paths.pop()
            self.stack.pop()

    def _suspended(self, function: Function, frame: Frame, node: ast.AST) -> Iterator[Value]:
        """The body of a generator, which runs where it is asked."""
        body = self.block(function.node.body, frame) if not isinstance(function.node, ast.Lambda) else iter(())
        own: list[Loop] = []  # the loops of the generator itself go on where it is asked again
        while True:
            with self._inside(function, node):
                outer, self.loops = self.loops, [*self.loops, *own]
                before, self.outside = self.outside, len(outer)
                try:
                    value = next(body)
                except (StopIteration, Return):
                    return
                finally:
                    own, self.loops = self.loops[len(outer) :], outer
                    self.outside = before
            yield value

    def _streamed(self, body: Iterator[Value]) -> Value:
        """What a generator gives: as much as the loop over it asks for."""
        seen: list[Value] = []

        def make(number: int) -> Value:
            while len(seen) <= number:
                value = next(body, OVER)
                if value is OVER:
                    return OVER
                seen.append(value)
            return seen[number]

        return Endless(make)

    def _bound_arguments(self, function: Function, arguments: Arguments, keywords: Keywords) -> dict[str, Value]:
        wanted = function.node.args
        names = [each.arg for each in (*wanted.posonlyargs, *wanted.args)]
        values: dict[str, Value] = dict(zip(names, arguments, strict=False))
        if wanted.vararg is not None:
            values[wanted.vararg.arg] = tuple(arguments[len(names) :])
        others: dict[str, Value] = {}
        is_open = "**" in keywords
        known = {*names, *(each.arg for each in wanted.kwonlyargs)}
        for name, each in keywords.items():
            if name in known:
                values[name] = each
            elif name != "**":
                others[name] = each
        if wanted.kwarg is not None:
            values[wanted.kwarg.arg] = others if not is_open else Unknown("**")
        late = names[len(names) - len(function.defaults) :] if function.defaults else []
        for name, each in (*zip(late, function.defaults, strict=False), *function.keyword_defaults.items()):
            values.setdefault(name, Unknown(name) if is_open else each)
        for name in known:
            values.setdefault(name, Unknown(name))
        return values

    # contexts

    def enter(self, value: Value, node: ast.AST) -> tuple[Callable[[], None], Value]:
        before = self.is_grad, self.autocast

        def leave() -> None:
            self.is_grad, self.autocast = before

        if isinstance(value, Object):
            if value.kind == "autocast":
                self.autocast = value.state["format"]
                return leave, None
            if value.kind == "grad_mode":
                self.is_grad = value.state["enabled"] is not False
                return leave, None
            if value.kind == "context":
                entered = next(value.state["body"], None)
                return lambda: _resume(value.state["body"]), entered
            if value.method("__enter__"):
                entered = self.call(self.attribute(value, "__enter__", node), (), {}, node)
                return lambda: self._leave(value, node), entered
        return leave, value if isinstance(value, Object) else Unknown("a context")

    def _leave(self, value: Object, node: ast.AST) -> None:
        if value.method("__exit__"):
            self.call(self.attribute(value, "__exit__", node), (None, None, None), {}, node)


def _is_by_name(node: ast.AST) -> bool:
    """Whether NODE calls something.forward(…)."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "forward":
        return False
    return not isinstance(node.func.value, ast.Name) or node.func.value.id != "self"  # a method of its own that uses it


def _resume(body: Iterator[Value]) -> None:
    """What stands behind the `yield` of a context manager."""
    for _ in body:
        return


Calls._calls = {
    Function: Calls.call_function,
    Method: Calls._method,
    Class: Calls._instance,
    External: Calls._package,
    Partial: Calls._partial_call,
    Operation: Calls._operation,
    Object: Calls._called_object,
}
