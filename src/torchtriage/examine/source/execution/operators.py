"""Operators: what they come to, with Python's own meaning where the operands are known."""

from __future__ import annotations

import ast
import operator
import posixpath
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from torchtriage.examine.source.execution.autograd import Tensor
from torchtriage.examine.source.execution.binding import Binding, is_hashable
from torchtriage.examine.source.execution.bounds import BOTH
from torchtriage.examine.source.execution.loops import PERIODS, ROUNDS
from torchtriage.examine.source.execution.ranks import is_of_rank, names_rank
from torchtriage.examine.source.execution.values import (
    LONGEST,
    MASK,
    Class,
    Condition,
    External,
    Function,
    Loaded,
    Member,
    Namespace,
    Object,
    Unknown,
    Value,
    bounded,
    is_concrete,
    share_of,
)

_WIDTH = re.compile(r"%[^a-zA-Z%]*(?:\d{4}|\*)")
"""A conversion that pads a text to thousands of characters, or to as many as an argument says."""
_ACCUMULATES = re.compile(r"accum|micro_?steps|(^|-)every$|update_(every|freq)|grad(ient)?_steps", re.IGNORECASE)
PERIOD = 64
"""From here on a period is one of printing or evaluating, not of accumulation: a condition that holds now and then."""
ASSUMED = 2
"""The period that a setting of which nothing is known stands for: `step % args.accumulate`, `step % args.log_every`."""
LENGTH = "a length"
"""Why the length of a loader is not known."""
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
_DISTINCT = (Object, Class, Function, External)
TURNS = 3
"""Up to here a period comes around in the iterations of any loop that is executed."""


class Operators(Binding):
    """Binary operators and comparisons."""

    is_beside = False
    """Whether the test under way decides over something beside the training: a log, an evaluation, a checkpoint."""

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
        special = self._by_kind(op, left, right, in_place=in_place)
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
        if isinstance(op, ast.Mod) and isinstance(left, Unknown) and self.is_repeated and not is_of_rank(left):
            # of a step that goes on where a checkpoint has left off
            return Unknown("a period", is_periodic=True) if not is_of_rank(right) else NotImplemented
        if isinstance(op, ast.Add | ast.Sub) and isinstance(left, Loaded) and isinstance(right, int):
            return replace(left, offset=left.offset + (right if isinstance(op, ast.Add) else -right))
        return left if _stays(op, left, right) else _of_text(op, left, right)

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

    def compare(self, op: ast.cmpop, left: Value, right: Value) -> Value:
        is_of_text = isinstance(left, str) or isinstance(right, str)
        is_of_tensors = isinstance(left, Tensor) or isinstance(right, Tensor)
        if is_of_tensors and not is_of_text and not isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn):
            return _comparison([each for each in (left, right) if isinstance(each, Tensor)], share_of((left, right)))
        if isinstance(left, Unknown) and (right is None or isinstance(right, bool)):
            is_same = isinstance(op, ast.Is | ast.Eq) is (right is True)
            asked = Condition.build("is" if is_same else "not", left)
            asked.is_of_rank &= right is not None or not names_rank(left.why)  # every rank has one
            return asked
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
        if is_equality and isinstance(left, _DISTINCT) and isinstance(right, (*_DISTINCT, str, type(None))):
            return (left == right) is isinstance(op, ast.Eq)
        return Unknown("a comparison")

    def _contains(self, held: Value, value: Value, wanted: bool) -> Value:
        if isinstance(held, str) and isinstance(value, str):
            return (value in held) is wanted
        if isinstance(held, dict) and is_hashable(value):
            return (value in held) is wanted
        if isinstance(held, list | tuple | set) and not any(isinstance(each, Unknown) for each in held):
            return any(each is value or (is_concrete(each) and each == value) for each in held) is wanted
        if isinstance(held, Namespace) and isinstance(value, str) and value in held.values:
            return wanted  # if "size" in args
        return Unknown("in")


def _of_text(op: ast.operator, left: Value, right: Value) -> Value:
    """LEFT OP RIGHT where one of them is a text; else NotImplemented."""
    if isinstance(op, ast.Mod) and isinstance(left, str):
        return _fill(right)
    if isinstance(op, ast.Add) and isinstance(left, str) and is_of_rank(right):  # "cuda:" + os.environ["RANK"]
        return right
    if isinstance(op, ast.Add) and (isinstance(left, str) or isinstance(right, str)):  # args.folder + "/last.pt"
        is_unknown = isinstance(left, Unknown) or isinstance(right, Unknown)
        if isinstance(left, Unknown) and isinstance(right, str) and not is_of_rank(left):
            return Member("text", left.is_of_rank, left.is_option, left.is_plain, receiver=left, name=str(right))
        return Unknown.of("text", left, right) if is_unknown else NotImplemented
    if isinstance(op, ast.Div) and isinstance(left, str) and isinstance(right, str):  # Path(…) / "last.pt"
        return bounded(posixpath.join(left, right))
    return NotImplemented


def _fill(right: Value) -> Value:
    """What a text % RIGHT gives; NotImplemented where Python can tell.

    What stands for things of the program is not written out: `"%s: %s" % (self, batch)` is no text that anyone sees.
    """
    values = right if isinstance(right, list | tuple) else (right,)
    rank = next(filter(is_of_rank, values), None)
    if rank is not None:
        return rank  # "cuda:%d" % rank
    return NotImplemented if is_concrete(right) else Unknown.of("text", *values)


def _stays(op: ast.operator, left: Value, right: Value) -> bool:
    """Whether LEFT OP RIGHT is still what LEFT is, for all that is known of RIGHT."""
    if isinstance(op, ast.BitOr):  # losses | more
        return isinstance(left, dict) and isinstance(right, Unknown)
    return _is_length(left) and (isinstance(right, int) or isinstance(op, ast.Add | ast.Sub))  # len(loader) - 1


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


def _comparison(operands: list[Tensor], share: Object | None) -> Tensor:
    """What a comparison of OPERANDS, and maybe of a number, gives; SHARE: of which loader's samples it tells."""
    made = Tensor(cut=next((each.cut for each in operands if each.cut), None), share=share, format=MASK, bounds=BOTH)
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
