"""Expressions: what they come to, with Python's own meaning where the values are known."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from torchtriage.examine.source.execution.autograd import Tensor
from torchtriage.examine.source.execution.binding import is_hashable
from torchtriage.examine.source.execution.frames import Frame
from torchtriage.examine.source.execution.operators import Operators
from torchtriage.examine.source.execution.ranks import is_of_rank, is_rank_variable
from torchtriage.examine.source.execution.values import (
    LONGEST,
    Condition,
    External,
    Unknown,
    Value,
    is_concrete,
    truth,
)

_PADS = re.compile(r"\d{4}")
NEGATED = "a negative number"
"""What `-gamma` is, as settings are positive by habit."""


class Expressions(Operators):
    """What calls, attributes and loops do is left to the executor."""

    age: int
    _works: ClassVar[dict[type[ast.AST], Callable[..., Value]]] = {}

    def evaluate(self, node: ast.expr, frame: Frame) -> Value:
        """What NODE comes to in FRAME."""
        if isinstance(node, ast.Constant):
            return node.value
        self.count()
        work = self._works.get(type(node))
        return work(self, node, frame) if work is not None else Unknown(type(node).__name__)

    def _name(self, node: ast.Name, frame: Frame) -> Value:
        home = frame.home(node.id)
        return home[node.id] if home is not None else self.builtin(node.id, frame)

    def _attribute(self, node: ast.Attribute, frame: Frame) -> Value:
        return self.attribute(self.evaluate(node.value, frame), node.attr, node)

    def _call(self, node: ast.Call, frame: Frame) -> Value:
        called = self.evaluate(node.func, frame)
        arguments: list[Value] = []
        for each in node.args:
            if isinstance(each, ast.Starred):
                value = self.evaluate(each.value, frame)
                arguments += list(value) if isinstance(value, list | tuple) else [Unknown("*")]
            else:
                arguments.append(self.evaluate(each, frame))
        keywords: dict[str, Value] = {}
        for keyword in node.keywords:
            value = self.evaluate(keyword.value, frame)
            if keyword.arg is not None:
                keywords[keyword.arg] = value
            elif isinstance(value, dict):
                keywords |= {key: each for key, each in value.items() if isinstance(key, str)}
            else:
                keywords["**"] = value
        if isinstance(called, External) and called.name == "builtins.super":
            return self.parent(arguments, frame)
        return self.call(called, tuple(arguments), keywords, node)

    def _list(self, node: ast.List, frame: Frame) -> Value:
        return list(self._spread(node.elts, frame))

    def _tuple(self, node: ast.Tuple, frame: Frame) -> Value:
        return tuple(self._spread(node.elts, frame))

    def _set(self, node: ast.Set, frame: Frame) -> Value:
        found = list(self._spread(node.elts, frame))
        return set(found) if is_concrete(found) and all(map(is_hashable, found)) else Unknown("a set")

    def _spread(self, nodes: list[ast.expr], frame: Frame) -> Iterator[Value]:
        for each in nodes:
            if isinstance(each, ast.Starred):
                value = self.evaluate(each.value, frame)
                yield from value if isinstance(value, list | tuple) else [Unknown("*")]
            else:
                yield self.evaluate(each, frame)

    def _dict(self, node: ast.Dict, frame: Frame) -> Value:
        made: dict[Value, Value] = {}
        for key, each in zip(node.keys, node.values, strict=True):
            value = self.evaluate(each, frame)
            if key is None:
                made |= value if isinstance(value, dict) else {}  # what a file of settings may put in their place
                continue
            name = self.evaluate(key, frame)
            if not is_hashable(name):
                return Unknown("a key")
            made[name] = value
        return made

    def _subscript(self, node: ast.Subscript, frame: Frame) -> Value:
        return self.item(self.evaluate(node.value, frame), self.evaluate(node.slice, frame), node)

    def _slice(self, node: ast.Slice, frame: Frame) -> Value:
        parts = [
            self.evaluate(each, frame) if each is not None else None for each in (node.lower, node.upper, node.step)
        ]
        return slice(*parts) if is_concrete(parts) else Unknown.of("a slice", *parts)

    def _binary(self, node: ast.BinOp, frame: Frame) -> Value:
        return self.binary(node.op, self.evaluate(node.left, frame), self.evaluate(node.right, frame), node)

    def _unary(self, node: ast.UnaryOp, frame: Frame) -> Value:
        value = self.evaluate(node.operand, frame)
        if isinstance(node.op, ast.Not):
            known = truth(value)
            return Condition.build("not", value) if known is None else not known
        if isinstance(value, int | float):
            if isinstance(node.op, ast.USub):
                return -value
            return +value if isinstance(node.op, ast.UAdd) else ~int(value)
        if isinstance(node.op, ast.USub) and isinstance(value, Unknown):
            return Unknown(NEGATED, value.is_of_rank, value.is_option, value.is_plain)
        return self.combine((value,), node)

    def _boolean(self, node: ast.BoolOp, frame: Frame) -> Value:
        is_and = isinstance(node.op, ast.And)
        value: Value = None
        unknown: list[Value] = []
        for each in node.values:
            value = self.evaluate(each, frame)
            known = truth(value)
            if known is None:
                unknown.append(value)
            elif known is not is_and:
                return value  # whatever the unknown ones are, the result counts as this one does
        return Condition.build("and" if is_and else "or", *unknown) if unknown else value

    def _compare(self, node: ast.Compare, frame: Frame) -> Value:
        left = self.evaluate(node.left, frame)
        unknown: Value = None
        for op, each in zip(node.ops, node.comparators, strict=True):
            right = self.evaluate(each, frame)
            found = self.compare(op, left, right)
            if isinstance(found, Tensor):
                self.bury(found, [each for each in (left, right) if isinstance(each, Tensor)], node)
            known = truth(found)
            if known is False:
                return False
            unknown = found if known is None else unknown
            left = right
        return unknown if unknown is not None else True

    def _either(self, node: ast.IfExp, frame: Frame) -> Value:
        found = self.evaluate(node.test, frame)
        known = truth(found)
        if known is None:  # int(os.environ["RANK"]) if "RANK" in os.environ else -1: what a rank of a job has
            known = _asks_for_rank(node.test) or self.decide(node, found, [])
        if not is_of_rank(found):
            return self.evaluate(node.body if known else node.orelse, frame)
        with self.guard(node, known):
            value = self.evaluate(node.body if known else node.orelse, frame)
        is_apart = is_concrete(value) or isinstance(value, Unknown)  # open(log) if rank == 0 else None
        return Unknown("a choice", is_of_rank=True) if is_apart else value

    def note_asked(self, value: Value, test: ast.expr) -> None:
        """Python asks whether VALUE of TEST is true; what is only a name there is a flag, a list or None as a rule."""
        if not isinstance(test, ast.Name | ast.Attribute):
            self.note_read(value.parts if isinstance(value, Condition) else (value,), "bool", test)

    def _lambda(self, node: ast.Lambda, frame: Frame) -> Value:
        return self.function(node, frame, "<lambda>")

    def _comprehension(self, node: Any, frame: Frame) -> Value:
        inside = Frame(frame.file, {}, frame, frame.function, frame.owner)
        before = self.age
        made = list(self._comprehended(node, node.generators, inside))
        self.note_sum(made, node)
        if len(made) > 1 and made[0] is made[1]:
            self.note_repeated(made[:1], node)
        if isinstance(node, ast.ListComp) and made and self.age > before:  # [train_step(x) for x in loader]
            self.note_kept(made, made[-1], node)
        if isinstance(node, ast.SetComp):
            return set(made) if is_concrete(made) and all(map(is_hashable, made)) else Unknown("a set")
        return made

    def _dict_comprehension(self, node: ast.DictComp, frame: Frame) -> Value:
        inside = Frame(frame.file, {}, frame, frame.function, frame.owner)
        pairs = list(self._comprehended(node, node.generators, inside))
        if len(pairs) > 1 and pairs[0][1] is pairs[1][1]:
            self.note_repeated([pairs[0][1]], node)
        return dict(pairs) if all(is_hashable(key) for key, _ in pairs) else Unknown("a dict")

    def _comprehended(self, node: Any, generators: list[ast.comprehension], frame: Frame) -> Iterator[Value]:
        if not generators:
            if isinstance(node, ast.DictComp):
                yield self.evaluate(node.key, frame), self.evaluate(node.value, frame)
            else:
                yield self.evaluate(node.elt, frame)
            return
        first, *rest = generators
        with self.loop(first) as loop:
            for item in self.items(self.evaluate(first.iter, frame), first):
                if not self.goes_on(loop):
                    return
                self.bind(first.target, item, frame)
                if all(truth(self.evaluate(test, frame)) is not False for test in first.ifs):
                    yield from self._comprehended(node, rest, frame)

    def _walrus(self, node: ast.NamedExpr, frame: Frame) -> Value:
        value = self.evaluate(node.value, frame)
        self.bind(node.target, value, frame)
        return value

    def _awaited(self, node: ast.Await, frame: Frame) -> Value:
        return self.evaluate(node.value, frame)

    def _text(self, node: ast.JoinedStr, frame: Frame) -> Value:
        found = [self._text_part(each, frame) for each in node.values]
        rank = next(filter(is_of_rank, found), None)
        if rank is not None:
            return rank  # f"cuda:{rank}"
        is_known = all(isinstance(each, str) for each in found)
        return "".join(found)[:LONGEST] if is_known else Unknown.of("text", *found)

    def _text_part(self, node: ast.expr, frame: Frame) -> Value:
        value = self.evaluate(node.value if isinstance(node, ast.FormattedValue) else node, frame)
        wanted = node.format_spec if isinstance(node, ast.FormattedValue) else None
        form = self.evaluate(wanted, frame) if wanted is not None else ""
        self.note_read((value,), "format", node)
        if is_of_rank(value) or not is_concrete(value) or not isinstance(form, str) or _PADS.search(form):
            return value if isinstance(value, Unknown) else Unknown("text")
        try:
            return format(value, form)
        except (TypeError, ValueError):
            return Unknown("text")


def _asks_for_rank(test: ast.expr) -> bool:
    """Whether TEST asks whether the environment tells a process its rank."""
    match test:
        case ast.Compare(left=ast.Constant(value=str(name)), ops=[ast.In()], comparators=[ast.Attribute(attr=held)]):
            return held == "environ" and is_rank_variable(name)
    return False


Expressions._works = {
    ast.Name: Expressions._name,
    ast.Attribute: Expressions._attribute,
    ast.Call: Expressions._call,
    ast.List: Expressions._list,
    ast.Tuple: Expressions._tuple,
    ast.Set: Expressions._set,
    ast.Dict: Expressions._dict,
    ast.Subscript: Expressions._subscript,
    ast.Slice: Expressions._slice,
    ast.BinOp: Expressions._binary,
    ast.UnaryOp: Expressions._unary,
    ast.BoolOp: Expressions._boolean,
    ast.Compare: Expressions._compare,
    ast.IfExp: Expressions._either,
    ast.Lambda: Expressions._lambda,
    ast.ListComp: Expressions._comprehension,
    ast.SetComp: Expressions._comprehension,
    ast.GeneratorExp: Expressions._comprehension,
    ast.DictComp: Expressions._dict_comprehension,
    ast.NamedExpr: Expressions._walrus,
    ast.Await: Expressions._awaited,
    ast.JoinedStr: Expressions._text,
}
