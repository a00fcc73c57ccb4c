"""Statements: what a block of code does, one after the other."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar

from torchtriage.examine.source.execution.autograd import Tensor
from torchtriage.examine.source.execution.binding import ENVIRONMENT
from torchtriage.examine.source.execution.conditions import Conditions
from torchtriage.examine.source.execution.frames import Break, Continue, Frame, Raised, Return
from torchtriage.examine.source.execution.handlers import hides_errors
from torchtriage.examine.source.execution.ranks import is_of_rank
from torchtriage.examine.source.execution.values import (
    Class,
    External,
    Function,
    Object,
    Unknown,
    Value,
    truth,
)

_RECORDS = frozenset({"typing.NamedTuple", "pydantic.BaseModel", "pydantic_settings.BaseSettings"})
"""Classes whose annotations are the arguments that they are made of."""
_EXPECTING = frozenset({"pytest.raises"})
"""Contexts whose bodies are meant to fail."""
_ENUMS = frozenset({"enum.Enum", "enum.Flag", "enum.auto"})
_IN_PLACE: dict[type[ast.operator], str] = {ast.Mult: "mul_", ast.Div: "div_", ast.Add: "add_", ast.Sub: "sub_"}
"""The methods that augmented assignments call."""
_Definition = ast.FunctionDef | ast.AsyncFunctionDef


class Statements(Conditions):
    """Blocks are generators, since the body of a function may be one: what they give is what the code yields."""

    dropped: set[int]
    """Calls that are statements of their own: nobody gets what they give."""

    tried: int
    awaited: int
    """How many `try` are under way that wait for the end of an iterator."""
    totals: dict[int, int]
    _simple: ClassVar[dict[type[ast.AST], Callable[..., None]]] = {}
    _compound: ClassVar[dict[type[ast.AST], Callable[..., Iterator[Value]]]] = {}

    def block(self, statements: Iterable[ast.stmt], frame: Frame) -> Iterator[Value]:
        for statement in statements:
            self.count()
            kind = type(statement)
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Yield | ast.YieldFrom):
                yield from self._yielded(statement.value, frame)
            elif kind in self._simple:
                self._simple[kind](self, statement, frame)
            elif kind in self._compound:
                yield from self._compound[kind](self, statement, frame)

    def run(self, statements: Iterable[ast.stmt], frame: Frame) -> None:
        """STATEMENTS to their end; what they yield is dropped."""
        for _ in self.block(statements, frame):
            pass

    def assume_role(self, value: Value, target: ast.expr) -> Value:
        """VALUE, or what it must be, as it is used under the name TARGET, where nothing else is known of it."""
        return value

    # simple ones

    def _expression(self, node: ast.Expr, frame: Frame) -> None:
        if isinstance(node.value, ast.Call):
            self.dropped.add(id(node.value))
        elif isinstance(node.value, ast.ListComp) and isinstance(node.value.elt, ast.Call):
            self.dropped.add(id(node.value.elt))  # [each.to(device) for each in batch]
        value = self.evaluate(node.value, frame)
        if isinstance(node.value, ast.Attribute):
            self.name(value, node.value)

    def _assign(self, node: ast.Assign, frame: Frame) -> None:
        value = self.evaluate(node.value, frame)
        for target in node.targets:
            if isinstance(target, ast.Name) and _is_carried(value) and _reads(node.value, target.id):
                self.accumulate(target.id, value, node)  # total = total + loss
            self.bind(target, self.assume_role(value, target), frame)

    def _annotated(self, node: ast.AnnAssign, frame: Frame) -> None:
        if node.value is not None:
            self.bind(node.target, self.evaluate(node.value, frame), frame)
        if frame.is_class and isinstance(node.target, ast.Name):
            frame.values.setdefault("__annotations__", []).append(node.target.id)

    def _augment(self, node: ast.AugAssign, frame: Frame) -> None:
        before = self.evaluate(_loaded(node.target), frame)
        operand = self.evaluate(node.value, frame)
        if isinstance(before, External) and before.name == ENVIRONMENT and isinstance(operand, dict):
            self.set_environment(operand, node)
        value = self.binary(node.op, before, operand, node, in_place=True)
        if isinstance(before, Tensor):
            self.edit(before, node, _IN_PLACE.get(type(node.op), ""), (operand,))
        self.note_sum(value, node)
        if isinstance(before, list) and before is value:  # losses += [loss]
            self.note_kept(before, before[-1:], node)
        if isinstance(node.target, ast.Name):
            self.accumulate(node.target.id, value, node)
        elif isinstance(before, Unknown) and isinstance(value, Tensor):  # meters["loss"] += loss
            value = Unknown.of("a sum", before)
        self.bind(node.target, value, frame)

    def _delete(self, node: ast.Delete, frame: Frame) -> None:
        for target in node.targets:
            if isinstance(target, ast.Name):
                (frame.home(target.id) or {}).pop(target.id, None)
            elif isinstance(target, ast.Attribute):
                owner = self.evaluate(target.value, frame)
                if isinstance(owner, Object):
                    owner.values.pop(target.attr, None)
            elif isinstance(target, ast.Subscript):
                held, key = self.evaluate(target.value, frame), self.evaluate(target.slice, frame)
                if isinstance(held, dict) and isinstance(key, str | int):
                    held.pop(key, None)
                elif isinstance(held, list) and isinstance(key, slice):
                    del held[key]

    def _return(self, node: ast.Return, frame: Frame) -> None:
        value = self.evaluate(node.value, frame) if node.value is not None else None
        if isinstance(value, Tensor):
            self.note_used((value,), node)
        raise Return(value)

    def _raise(self, node: ast.Raise, frame: Frame) -> None:
        if frame.skipped and frame.function is not None and node is _last(frame.function):
            self.choose_return(frame)  # raise ValueError(f"unknown kind {kind}")
        raise Raised

    def _break(self, node: ast.Break, frame: Frame) -> None:
        raise Break

    def _continue(self, node: ast.Continue, frame: Frame) -> None:
        raise Continue

    def _global(self, node: ast.Global, frame: Frame) -> None:
        for name in node.names:
            if name in frame.values:  # from apex import amp; global amp
                frame.file.values[name] = frame.values.pop(name)
            frame.outside[name] = frame.file.values

    def _nonlocal(self, node: ast.Nonlocal, frame: Frame) -> None:
        for name in node.names:
            home = frame.parent.home(name) if frame.parent is not None else None
            if home is not None:
                frame.outside[name] = home

    def _function(self, node: _Definition, frame: Frame) -> None:
        made = self.function(node, frame, node.name)
        value: Value = made
        for decorator in reversed(node.decorator_list):
            value = self.decorated(value, decorator, frame)
        frame.store(node.name, value)

    def _class(self, node: ast.ClassDef, frame: Frame) -> None:
        bases = tuple(self.evaluate(each, frame) for each in node.bases if not isinstance(each, ast.Starred))
        inside: dict[str, Value] = {}
        made = Class(node.name, tuple(each for each in bases if each is not None), inside, frame.file.path, node)
        body = Frame(frame.file, inside, frame, frame.function, made, is_class=True)
        self.run(node.body, body)
        if _RECORDS.intersection(made.externals):
            made.fields = tuple(inside.get("__annotations__", ()))
        if _ENUMS.intersection(made.externals) and len(made.externals) == 1:  # one of str or int is compared as that
            for name, member in inside.items():
                if not isinstance(member, Function) and not name.startswith("_"):
                    inside[name] = Object("", cls=made, values={"value": member, "name": name})
        value: Value = made
        for decorator in reversed(node.decorator_list):
            value = self.decorated(value, decorator, frame)
        self.note_class(made)
        frame.store(node.name, value)

    # compound ones

    def _for(self, node: ast.For | ast.AsyncFor, frame: Frame) -> Iterator[Value]:
        over = self.evaluate(node.iter, frame)
        is_part = any(isinstance(each, ast.Slice) and each.step is not None for each in ast.walk(node.iter))
        if is_of_rank(over) and not is_part:  # batches[rank::world] has a part for every rank
            with self.guard(node, True):
                yield from self._repeat(node, over, frame)
        else:
            yield from self._repeat(node, over, frame)

    def _repeat(self, node: ast.For | ast.AsyncFor, over: Value, frame: Frame) -> Iterator[Value]:
        if isinstance(over, range | list | tuple):
            self.totals[id(node)] = len(over)
        with self.loop(node) as loop:
            for item in self.items(over, node):
                if not self.goes_on(loop):
                    break
                self.bind(node.target, item, frame)
                try:
                    yield from self.block(node.body, frame)
                except Continue:
                    continue
                except Break:
                    return
        yield from self.block(node.orelse, frame)

    def _while(self, node: ast.While, frame: Frame) -> Iterator[Value]:
        with self.loop(node) as loop:
            while self.goes_on(loop):
                found = self.evaluate(node.test, frame)
                known = truth(found)
                if known is None:
                    self.note_asked(found, node.test)
                if known is False:
                    break
                loop.is_endless |= known is None or isinstance(node.test, ast.Constant)
                try:
                    yield from self.block(node.body, frame)
                except Continue:
                    continue
                except Break:
                    return

    def _with(self, node: ast.With | ast.AsyncWith, frame: Frame) -> Iterator[Value]:
        contexts = []
        for item in node.items:
            value = self.evaluate(item.context_expr, frame)
            if isinstance(value, Unknown) and value.why in _EXPECTING:
                return
            leave, entered = self.enter(value, node)
            contexts.append(leave)
            if isinstance(value, Object) and value.kind == "suppress":
                contexts.append(self.handled(item.context_expr))
            if item.optional_vars is not None:
                self.bind(item.optional_vars, entered, frame)
        try:
            yield from self.block(node.body, frame)
        finally:
            for leave in reversed(contexts):
                leave()

    def _try(self, node: ast.Try | ast.TryStar, frame: Frame) -> Iterator[Value]:
        silent = [each for each in node.handlers if hides_errors(each, self._caught(each, frame))]
        leave = self.handled(silent[0] if silent else None)
        awaits = any(each.type is not None and "StopIteration" in ast.unparse(each.type) for each in node.handlers)
        try:
            try:
                self.tried += bool(node.handlers)
                self.awaited += awaits
                try:
                    yield from self.block(node.body, frame)
                finally:
                    self.tried -= bool(node.handlers)
                    self.awaited -= awaits
            except Return:
                leave()
                raise
            except Raised:
                if not node.handlers:
                    raise
                handler = node.handlers[0]
                if handler.name:
                    frame.store(handler.name, Unknown("an error"))
                yield from self.block(handler.body, frame)
            else:
                leave()
                yield from self.block(node.orelse, frame)
        finally:
            yield from self.block(node.finalbody, frame)

    def _caught(self, handler: ast.ExceptHandler, frame: Frame) -> set[str]:
        """The names of the classes of errors that HANDLER takes."""
        found = External("builtins.BaseException") if handler.type is None else self.evaluate(handler.type, frame)
        kinds = found if isinstance(found, tuple | list) else (found,)
        return {each.name for each in kinds if isinstance(each, External)}

    def _yielded(self, node: ast.Yield | ast.YieldFrom, frame: Frame) -> Iterator[Value]:
        value = self.evaluate(node.value, frame) if node.value is not None else None
        if isinstance(node, ast.YieldFrom):
            yield from self.items(value, node)
        else:
            yield value

    # definitions

    def function(self, node: _Definition | ast.Lambda, frame: Frame, name: str) -> Function:
        arguments = node.args
        named = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        made = Function(
            name,
            node,
            frame,
            tuple(self.evaluate(each, frame) for each in arguments.defaults),
            {key.arg: self.evaluate(each, frame) for key, each in named if each is not None},
            frame.owner if frame.is_class else None,
            guards=tuple(self.guards),
        )
        self.note_defaults(made, [*arguments.defaults, *(each for each in arguments.kw_defaults if each is not None)])
        return made


def _last(function: Function) -> ast.AST:
    body = function.node.body
    return body[-1] if isinstance(body, list) else body


def _loaded(target: Any) -> ast.expr:
    """TARGET of an augmented assignment, as what is read."""
    match target:
        case ast.Name(id=name):
            node: ast.expr = ast.Name(name, ast.Load())
        case ast.Attribute(value=value, attr=attr):
            node = ast.Attribute(value, attr, ast.Load())
        case ast.Subscript(value=value, slice=key):
            node = ast.Subscript(value, key, ast.Load())
        case _:
            return ast.Constant(None)
    return ast.copy_location(node, target)


def _is_carried(value: Value) -> bool:
    """Whether VALUE has operations of several iterations in its graph."""
    return isinstance(value, Tensor) and len(value.ages) > 1


def _reads(node: ast.expr, name: str) -> bool:
    return any(isinstance(each, ast.Name) and each.id == name for each in ast.walk(node))


Statements._simple = {
    ast.Expr: Statements._expression,
    ast.Assign: Statements._assign,
    ast.AnnAssign: Statements._annotated,
    ast.AugAssign: Statements._augment,
    ast.Delete: Statements._delete,
    ast.Return: Statements._return,
    ast.Raise: Statements._raise,
    ast.Break: Statements._break,
    ast.Continue: Statements._continue,
    ast.Global: Statements._global,
    ast.Nonlocal: Statements._nonlocal,
    ast.FunctionDef: Statements._function,
    ast.AsyncFunctionDef: Statements._function,
    ast.ClassDef: Statements._class,
    ast.Import: lambda self, node, frame: self.imports(node, frame),
    ast.ImportFrom: lambda self, node, frame: self.imports_from(node, frame),
}
Statements._compound = {
    ast.If: Statements._if,
    ast.For: Statements._for,
    ast.AsyncFor: Statements._for,
    ast.While: Statements._while,
    ast.With: Statements._with,
    ast.AsyncWith: Statements._with,
    ast.Try: Statements._try,
    ast.TryStar: Statements._try,
    ast.Match: Statements._match,
}
