"""Statements: what a block of code does, one after the other."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar

from torchtriage.examine.source.execution.expressions import Expressions, is_of_rank
from torchtriage.examine.source.execution.frames import Break, Continue, Frame, Raised, Return
from torchtriage.examine.source.execution.values import (
    Class,
    External,
    Function,
    Object,
    Tensor,
    Unknown,
    Value,
    truth,
)

_LEAVES = (ast.Raise, ast.Return, ast.Continue, ast.Break)
_RECORDS = frozenset({"typing.NamedTuple", "pydantic.BaseModel", "pydantic_settings.BaseSettings"})
"""Classes whose annotations are the arguments that they are made of."""
_MAIN = re.compile(r"main|master|rank|primary|chief|zero|local", re.IGNORECASE)
"""What conditions on the rank are called where they come from code that is not executed."""
_BROAD = frozenset({"builtins.Exception", "builtins.BaseException", "builtins.RuntimeError"})
_ENUMS = frozenset({"enum.Enum", "enum.Flag", "enum.auto"})
_Definition = ast.FunctionDef | ast.AsyncFunctionDef


class Statements(Expressions):
    """Blocks are generators, since the body of a function may be one: what they give is what the code yields."""

    dropped: set[int]
    """Calls that are statements of their own: nobody gets what they give."""

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

    # simple ones

    def _expression(self, node: ast.Expr, frame: Frame) -> None:
        if isinstance(node.value, ast.Call):
            self.dropped.add(id(node.value))
        value = self.evaluate(node.value, frame)
        if isinstance(node.value, ast.Attribute):
            self.name(value, node.value)

    def _assign(self, node: ast.Assign, frame: Frame) -> None:
        value = self.evaluate(node.value, frame)
        for target in node.targets:
            self.bind(target, value, frame)

    def _annotated(self, node: ast.AnnAssign, frame: Frame) -> None:
        if node.value is not None:
            self.bind(node.target, self.evaluate(node.value, frame), frame)
        if frame.is_class and isinstance(node.target, ast.Name):
            frame.values.setdefault("__annotations__", []).append(node.target.id)

    def _augment(self, node: ast.AugAssign, frame: Frame) -> None:
        before = self.evaluate(_loaded(node.target), frame)
        value = self.binary(node.op, before, self.evaluate(node.value, frame), node, in_place=True)
        if isinstance(before, Tensor):
            self.edit(before, node)
        if isinstance(node.target, ast.Name):
            self.accumulate(node.target.id, value, node)
        self.bind(node.target, value, frame)

    def _delete(self, node: ast.Delete, frame: Frame) -> None:
        for target in node.targets:
            if isinstance(target, ast.Name):
                (frame.home(target.id) or {}).pop(target.id, None)
            elif isinstance(target, ast.Subscript):
                held, key = self.evaluate(target.value, frame), self.evaluate(target.slice, frame)
                if isinstance(held, dict) and isinstance(key, str | int):
                    held.pop(key, None)
                elif isinstance(held, list) and isinstance(key, slice):
                    del held[key]

    def _return(self, node: ast.Return, frame: Frame) -> None:
        raise Return(self.evaluate(node.value, frame) if node.value is not None else None)

    def _raise(self, node: ast.Raise, frame: Frame) -> None:
        raise Raised

    def _break(self, node: ast.Break, frame: Frame) -> None:
        raise Break

    def _continue(self, node: ast.Continue, frame: Frame) -> None:
        raise Continue

    def _global(self, node: ast.Global, frame: Frame) -> None:
        for name in node.names:
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
        frame.store(node.name, value)

    # compound ones

    def _if(self, node: ast.If, frame: Frame) -> Iterator[Value]:
        found = self.evaluate(node.test, frame)
        value = truth(found)
        if value is None:
            value = self.decide(node, found, node.body)
        if not is_of_rank(found) and not (isinstance(found, Unknown) and _MAIN.search(ast.unparse(node.test))):
            yield from self.block(node.body if value else node.orelse, frame)
            return
        with self.guard(node, value):
            yield from self.block(node.body if value else node.orelse, frame)
        if leaves(node.body):  # if rank != 0: return
            self.guard_rest(node, value)

    def _for(self, node: ast.For | ast.AsyncFor, frame: Frame) -> Iterator[Value]:
        over = self.evaluate(node.iter, frame)
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
            while self.goes_on(loop) and truth(self.evaluate(node.test, frame)) is not False:
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
            leave, entered = self.enter(value, node)
            contexts.append(leave)
            if item.optional_vars is not None:
                self.bind(item.optional_vars, entered, frame)
        try:
            yield from self.block(node.body, frame)
        finally:
            for leave in reversed(contexts):
                leave()

    def _try(self, node: ast.Try | ast.TryStar, frame: Frame) -> Iterator[Value]:
        silent = [each for each in node.handlers if is_silent(each) and self._is_broad(each, frame)]
        leave = self.handled(silent[0] if silent else None)
        try:
            try:
                yield from self.block(node.body, frame)
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

    def _is_broad(self, handler: ast.ExceptHandler, frame: Frame) -> bool:
        """Whether HANDLER takes what goes wrong in a training step, whatever it is."""
        if handler.type is None:
            return True
        found = self.evaluate(handler.type, frame)
        kinds = found if isinstance(found, tuple | list) else (found,)
        return any(isinstance(each, External) and each.name in _BROAD for each in kinds)

    def _match(self, node: ast.Match, frame: Frame) -> Iterator[Value]:
        subject = self.evaluate(node.subject, frame)
        for case in node.cases:
            fits = self._fits(case.pattern, subject, frame)
            if fits is not False:
                yield from self.block(case.body, frame)
                return

    def _fits(self, pattern: ast.pattern, subject: Value, frame: Frame) -> bool | None:
        match pattern:
            case ast.MatchValue(value=value):
                return truth(self.compare(ast.Eq(), subject, self.evaluate(value, frame)))
            case ast.MatchSingleton(value=value):
                return truth(self.compare(ast.Is(), subject, value))
            case ast.MatchOr(patterns=patterns):
                found = [self._fits(each, subject, frame) for each in patterns]
                return True if True in found else None if None in found else False
            case ast.MatchAs(pattern=None, name=name):
                if name:
                    frame.store(name, subject)
                return True
        return None

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
        return Function(
            name,
            node,
            frame,
            tuple(self.evaluate(each, frame) for each in arguments.defaults),
            {key.arg: self.evaluate(each, frame) for key, each in named if each is not None},
            frame.owner if frame.is_class else None,
            is_generator=not isinstance(node, ast.Lambda) and _yields(node),
        )


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


def _yields(node: _Definition) -> bool:
    waiting: list[ast.AST] = list(node.body)
    while waiting:
        each = waiting.pop()
        if isinstance(each, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            waiting += ast.iter_child_nodes(each)
    return False


def is_silent(handler: ast.ExceptHandler) -> bool:
    """Whether HANDLER does nothing about an error."""
    return all(isinstance(each, ast.Pass | ast.Continue) or _is_nothing(each) for each in handler.body)


def _is_nothing(statement: ast.stmt) -> bool:
    """`return` or `return None`."""
    value = statement.value if isinstance(statement, ast.Return) else statement
    return value is None or (isinstance(value, ast.Constant) and value.value is None)


def leaves(body: list[ast.stmt]) -> bool:
    """Whether BODY ends by leaving: a guard."""
    last = body[-1] if body else None
    if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call):
        called = last.value.func
        return isinstance(called, ast.Attribute) and called.attr in ("exit", "_exit", "error", "skip")
    return isinstance(last, _LEAVES)


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
