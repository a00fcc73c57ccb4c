"""Expressions: what they come to, with Python's own meaning where the values are known."""

from __future__ import annotations

import ast
import operator
import posixpath
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, ClassVar

from torchtriage.examine.source.execution.autograd import Tensor
from torchtriage.examine.source.execution.binding import Binding, is_hashable
from torchtriage.examine.source.execution.frames import Frame
from torchtriage.examine.source.execution.loops import PERIODS, ROUNDS
from torchtriage.examine.source.execution.values import (
    LONGEST,
    MASK,
    Class,
    Condition,
    External,
    Function,
    Loaded,
    Member,
    Object,
    Unknown,
    Value,
    bounded,
    is_concrete,
    share_of,
    truth,
)

_PADS = re.compile(r"\d{4}")
_WIDTH = re.compile(r"%[^a-zA-Z%]*(?:\d{4}|\*)")
"""A conversion that pads a text to thousands of characters, or to as many as an argument says."""
_ACCUMULATES = re.compile(r"accum|micro_?steps|(^|-)every$|update_(every|freq)|grad(ient)?_steps", re.IGNORECASE)
PERIOD = 64
"""From here on a period is one of printing or evaluating, not of accumulation: a condition that holds now and then."""
ASSUMED = 2
"""The period that a setting of which nothing is known stands for: `step % args.accumulate`, `step % args.log_every`."""
LENGTH = "a length"
"""Why the length of a loader is not known."""
NEGATED = "a negative number"
"""What `-gamma` is, as settings are positive by habit."""
_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
_COMPARED: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_DISTINCT = (Object, Class, Function, External, Tensor)


TURNS = 3
"""Up to here a period comes around in the iterations of any loop that is executed."""


class Expressions(Binding):
    """What calls, attributes and loops do is left to the executor."""

    age: int
    _works: ClassVar[dict[type[ast.AST], Callable[..., Value]]] = {}
    is_beside = False
    """Whether the test under way decides over something beside the training: a log, an evaluation, a checkpoint."""

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

    def binary(self, op: ast.operator, left: Value, right: Value, node: ast.AST, *, in_place: bool = False) -> Value:
        """LEFT OP RIGHT; a list is extended IN_PLACE."""
        if isinstance(op, ast.Mult) and isinstance(left, list | tuple) != isinstance(right, list | tuple):
            repeated = self._repeated(left, right, node) if isinstance(left, list | tuple) else (
                self._repeated(right, left, node)
            )  # fmt: skip
            if repeated is not None:
                return repeated
        if isinstance(op, ast.Mod) and isinstance(left, str):
            self.note_read((right,), "format", node)
        held = left.state.get("items") if in_place and isinstance(left, Object) else None
        if isinstance(op, ast.Add) and isinstance(held, list) and isinstance(right, list | tuple):  # a ModuleList
            held.extend(right[:LONGEST])
            return left
        for special in (self._by_kind(op, left, right, in_place=in_place), _of_text(op, left, right)):
            if special is not NotImplemented:
                return special
        plain = (list, tuple, dict, set, str, int, float, bool)
        work = _BINARY.get(type(op))
        if work is None or not isinstance(left, plain) or not isinstance(right, plain) or _is_large(op, left, right):
            return self.combine((left, right), node, op)
        try:
            return bounded(work(left, right))
        except Exception:  # noqa: BLE001 - what Python refuses here, it would refuse in the program
            return Unknown("an error")

    def _repeated(self, held: list[Value] | tuple[Value, ...], count: Value, node: ast.AST) -> Value:
        """HELD * COUNT where it holds modules, or places for them; some copies where nobody knows how many."""
        holds_things = any(isinstance(each, Object) for each in held)
        if holds_things and not (isinstance(count, int) and count < 2):
            self.note_repeated(held, node)
        is_of_places = bool(held) and all(each is None for each in held)
        is_known = isinstance(count, int | Tensor)
        return held * ROUNDS if not is_known and (holds_things or is_of_places) else None

    def _by_kind(self, op: ast.operator, left: Value, right: Value, *, in_place: bool) -> Value:
        """LEFT OP RIGHT where their kinds give it a meaning of its own; else NotImplemented."""
        if in_place and isinstance(op, ast.Add) and isinstance(left, list) and isinstance(right, list | tuple):
            left.extend(right[:LONGEST])
            return bounded(left)
        if isinstance(op, ast.Mod) and isinstance(left, int):
            return self._remainder(left, right)
        if isinstance(op, ast.Div) and isinstance(left, str) and isinstance(right, str):  # Path(…) / "last.pt"
            return bounded(posixpath.join(left, right))
        return self._offset(op, left, right) if isinstance(op, ast.Add | ast.Sub) else NotImplemented

    def _offset(self, op: ast.operator, left: Value, right: Value) -> Value:
        """LEFT + RIGHT, or their difference, where one of them stays what it is; else NotImplemented."""
        if isinstance(op, ast.Add) and isinstance(left, str) and is_of_rank(right):  # "cuda:" + os.environ["RANK"]
            return right
        if isinstance(left, Unknown) and left.why == LENGTH:  # len(loader) - 1
            return left
        if isinstance(left, Loaded) and isinstance(right, int):
            return replace(left, offset=left.offset + (right if isinstance(op, ast.Add) else -right))
        return NotImplemented

    def _remainder(self, left: int, right: Value) -> Value:
        """LEFT % RIGHT, mostly of a counter: what it decides happens once in a period."""
        if isinstance(right, Unknown) and not right.is_of_rank and self.is_repeated:
            right = ASSUMED
        if not isinstance(right, int):
            return NotImplemented
        self.note_count(right)
        is_seldom = right > PERIOD or (right >= PERIODS and self.is_around_training)
        if is_seldom or (self.is_beside and right > TURNS and self.is_repeated):
            return Unknown("a period", is_periodic=True)
        self.note_period(right)
        return left % right if right else NotImplemented

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

    def compare(self, op: ast.cmpop, left: Value, right: Value) -> Value:
        is_of_text = isinstance(left, str) or isinstance(right, str)
        is_of_tensors = isinstance(left, Tensor) or isinstance(right, Tensor)
        if is_of_tensors and not is_of_text and not isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn):
            return _comparison([each for each in (left, right) if isinstance(each, Tensor)], share_of((left, right)))
        if isinstance(left, Unknown) and (right is None or isinstance(right, bool)):
            is_same = isinstance(op, ast.Is | ast.Eq) is (right is True)
            return Condition.build("is" if is_same else "not", left)
        if isinstance(left, Unknown) or isinstance(right, Unknown):
            return self._compared_count(op, left, right)
        if isinstance(op, ast.Is | ast.IsNot):
            return (left is right or (is_concrete(left) and left == right)) is isinstance(op, ast.Is)
        if isinstance(op, ast.In | ast.NotIn):
            return self._contains(right, left, isinstance(op, ast.In))
        return self._compared(op, left, right)

    def _compared_count(self, op: ast.cmpop, left: Value, right: Value) -> Value:
        """LEFT OP RIGHT, of which one is not known; what counts batches is compared as if it were."""
        is_end = (isinstance(left, int) and _is_length(right)) or (isinstance(right, int) and _is_length(left))
        if isinstance(op, ast.Eq) and is_end:
            return False  # step + 1 == len(loader): the batches that show what the loop does are not its last one
        if isinstance(left, int) and counts_batches(right):  # if waiting < args.accumulate: continue
            return self._compared(op, left, ASSUMED)
        found = Unknown.of("a comparison", left, right)
        is_opposite = isinstance(op, ast.NotEq | ast.NotIn | ast.IsNot)  # rank != -1 holds where rank == -1 does not
        return Condition.build("not", found) if is_opposite else found

    def _compared(self, op: ast.cmpop, left: Value, right: Value) -> Value:
        if self.is_repeated and is_threshold(op, left, right):
            return Unknown("a threshold", is_plain=True)
        if is_concrete(left) and is_concrete(right):
            if isinstance(left, int) and isinstance(right, int):
                self.note_count(max(left, right))
            try:
                return bool(_COMPARED[type(op)](left, right))
            except TypeError:
                return Unknown("an error")
        is_equality = isinstance(op, ast.Eq | ast.NotEq)
        if is_equality and isinstance(left, _DISTINCT[:4]) and isinstance(right, (*_DISTINCT[:4], str, type(None))):
            return (left == right) is isinstance(op, ast.Eq)
        return Unknown("a comparison")

    def _contains(self, held: Value, value: Value, wanted: bool) -> Value:
        if isinstance(held, str) and isinstance(value, str):
            return (value in held) is wanted
        if isinstance(held, dict) and is_hashable(value):
            return (value in held) is wanted
        if isinstance(held, list | tuple | set) and not any(isinstance(each, Unknown) for each in held):
            return any(each is value or (is_concrete(each) and each == value) for each in held) is wanted
        return Unknown("in")

    def _either(self, node: ast.IfExp, frame: Frame) -> Value:
        found = self.evaluate(node.test, frame)
        known = truth(found)
        if known is None:
            known = self.decide(node, found, [])
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


def _of_text(op: ast.operator, left: Value, right: Value) -> Value:
    """LEFT OP RIGHT where LEFT is a text or a length; else NotImplemented."""
    if isinstance(op, ast.Add) and isinstance(left, str) and is_of_rank(right):  # "cuda:" + os.environ["RANK"]
        return right
    if isinstance(op, ast.Add) and (isinstance(left, str) or isinstance(right, str)):  # args.folder + "/last.pt"
        is_unknown = isinstance(left, Unknown) or isinstance(right, Unknown)
        if isinstance(left, Unknown) and isinstance(right, str) and not is_of_rank(left):
            return Member("text", left.is_of_rank, left.is_option, left.is_plain, receiver=left, name=str(right))
        return Unknown.of("text", left, right) if is_unknown else NotImplemented
    if isinstance(op, ast.Div) and isinstance(left, str) and isinstance(right, str):  # Path(…) / "last.pt"
        return bounded(posixpath.join(left, right))
    return left if isinstance(right, int) and _is_length(left) else NotImplemented  # len(loader) - 1


def _is_length(value: Value) -> bool:
    """Whether VALUE is how many elements something has that is gone through without a known end."""
    return isinstance(value, Unknown) and value.why == LENGTH and value.is_plain


def counts_batches(value: Value) -> bool:
    """Whether VALUE, which is not known, is how many batches are accumulated: args.grad_accum_steps."""
    if not isinstance(value, Unknown) or isinstance(value, Loaded):
        return False
    return _ACCUMULATES.search(value.name if isinstance(value, Member) else value.why) is not None


def is_threshold(op: ast.cmpop, left: Value, right: Value) -> bool:
    """Whether a count, which so far is low, is compared with a high number: more turns of a loop would reach that."""
    counts = isinstance(left, int) and isinstance(right, int) and not isinstance(op, ast.Eq | ast.NotEq)
    low, high = sorted((left, right)) if counts else (0, 0)
    return counts and 0 <= low <= PERIOD < high


def is_of_rank(value: Value) -> bool:
    """Whether VALUE is known to differ among the ranks."""
    return isinstance(value, Unknown) and value.is_of_rank


def _comparison(operands: list[Tensor], share: Object | None) -> Tensor:
    """What a comparison of OPERANDS, and maybe of a number, gives; SHARE: of which loader's samples it tells."""
    made = Tensor(cut=next((each.cut for each in operands if each.cut), None), share=share, format=MASK)
    made.device = next((each.device for each in operands if each.device), "")
    if len(operands) == 1:
        made.attribute, made.created, made.birth = operands[0].attribute, operands[0].created, operands[0].birth
    return made


def _is_large(op: ast.operator, left: Value, right: Value) -> bool:
    """Whether the result may be far larger than its operands."""
    sizes = [len(each) if isinstance(each, str | list | tuple) else abs(each) if isinstance(each, int | float) else 1
             for each in (left, right)]  # fmt: skip
    if isinstance(op, ast.Pow | ast.LShift):
        return sizes[0] > LONGEST or sizes[1] > 64
    if isinstance(op, ast.Mod) and isinstance(left, str):
        return _WIDTH.search(left) is not None
    return (
        isinstance(op, ast.Mult)
        and isinstance(left, str | list | tuple) | isinstance(right, str | list | tuple)
        and (sizes[0] * sizes[1] > LONGEST)
    )


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
