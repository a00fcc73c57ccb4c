"""Conditions: which way an execution goes at `if` and `match`, and what it knows then."""

from __future__ import annotations

import ast
import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import Literal

from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.autograd import Tensor
from torchtriage.examine.source.execution.expressions import Expressions
from torchtriage.examine.source.execution.frames import Frame, Return
from torchtriage.examine.source.execution.loops import Loop
from torchtriage.examine.source.execution.lore import kind_of
from torchtriage.examine.source.execution.ranks import Guard, certainty_of, is_of_rank
from torchtriage.examine.source.execution.values import (
    BROADCAST,
    Class,
    Condition,
    External,
    Function,
    Member,
    Object,
    Unknown,
    Value,
    given_model,
    truth,
)
from torchtriage.examine.source.nodes import once

_STEPS = re.compile(r"step|zero_grad|backward|update|unscale|train|sync|optim|clip")
"""What is called where a training goes on: gradients are accumulated for so many batches."""
_ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
"""`if now - self.last < self.pause: return False` is a choice, `if not is_initialized(): return False` a guard."""
Takes = Literal["always", "never", "once", "else"]
_TENSOR = External("torch.Tensor")
_LEAVES = (ast.Raise, ast.Return, ast.Continue, ast.Break)


class Conditions(Expressions):
    """Each execution of a program goes one of its ways where nobody knows what a condition comes to."""

    guards: list[Guard]
    stack: list[Function]
    asks_rank: bool
    """Whether a condition on the rank came up: other ranks go the other way."""
    loops: list[Loop]
    events: list[events.Event]
    takes: Takes
    """Whether conditions that cannot be known, and guard nothing, hold."""
    decisions: dict[int, int]
    """How often each of them came up, by its node."""
    is_apart: bool
    """Whether nothing in sight calls what is executed, so that its arguments are invented."""

    @abstractmethod
    def modules(self, module: Object) -> list[Object]:
        """MODULE and all that are registered below it, each once."""

    @abstractmethod
    def block(self, statements: Iterable[ast.stmt], frame: Frame) -> Iterator[Value]:
        """STATEMENTS, one after the other, with what they yield."""

    def _if(self, node: ast.If, frame: Frame) -> Iterator[Value]:
        before, self.is_beside = self.is_beside, _is_beside(node)
        found = self.evaluate(node.test, frame)
        self.is_beside = before
        value = self._truth(found, node)
        if value is None:
            is_way = is_of_rank(found) and not isinstance(node.body[-1], ast.Raise)  # other ranks go the other one
            value = self.decide(node, found, [] if is_way else node.body)
            match node.body:
                case [ast.Return(value=ast.expr() as given)] if not (value or is_of_rank(found)):
                    frame.skipped += [given] if not isinstance(given, ast.Constant) else []
        if value:
            self._narrow(node.test, frame)
        certainty = certainty_of(found, value, node.test)
        if certainty is None:
            yield from self.block(node.body if value else node.orelse, frame)
            return
        self.asks_rank |= certainty == "rank"
        if certainty == "rank" and self._comes_in_turn(node.test):
            certainty = "named"
        with self.guard(node, value, certainty):
            yield from self.block(node.body if value else node.orelse, frame)
        if leaves(node.body):  # if rank != 0: return
            self.guard_rest(node, value, certainty)
        for name in _stored(node) if certainty != "open" else ():  # writes = True, on some ranks
            home = frame.home(name)
            if home is not None and _takes_broadcast(node, name, frame):  # if rank != 0: stop = received[0]
                home[name] = Unknown(BROADCAST)
            elif home is not None and (home[name] is None or isinstance(home[name], bool | str)):
                home[name] = Unknown(name, is_of_rank=True)

    def _truth(self, found: Value, node: ast.If) -> bool | None:
        """What FOUND, the test of NODE, comes to; what refuses arguments that are invented does not hold: a caller of
        transformers gives either words or their embeddings, and not both or none.
        """
        refuses = self.is_apart and isinstance(node.body[-1], ast.Raise) and _asks_for_none(node.test)
        value = truth(found)
        return False if value and refuses else value

    def decide(self, node: ast.AST, value: Value, body: list[ast.stmt]) -> bool:
        if isinstance(node, ast.If | ast.IfExp):
            self.note_asked(value, node.test)
        times = self.decisions.get(id(node), 0)
        self.decisions[id(node)] = times + 1
        holds = self._holds(value, times, node) or _is_refused_else(node)
        last = body[-1].value if body and isinstance(body[-1], ast.Return) else None
        asks = isinstance(node, ast.If) and isinstance(node.test, ast.Compare) and isinstance(node.test.ops[0], _ORDERS)
        is_answer = asks and isinstance(last, ast.Constant) and isinstance(last.value, bool)
        is_branch = last is not None and (len(body) > 1 or is_answer or _is_refused_else(node))
        if body and leaves(body) and not is_branch:
            # `if step % 500: continue` holds back what comes now and then; others are guards
            return not holds and isinstance(value, Unknown) and value.why == "a period"
        return holds

    def _holds(self, value: Value, times: int, node: ast.AST | None = None) -> bool:
        """Whether the condition VALUE of NODE holds; one that came up TIMES before. `not x` is what x is not."""
        if self.takes == "else" and node is not None:  # only the branches behind an `else` are new
            is_behind = bool(self.stack) and id(node) in _behind_else(self.stack[-1].node)
            return is_behind or not (isinstance(node, ast.If) and node.orelse)
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

    def _comes_in_turn(self, test: ast.expr) -> bool:
        """Whether TEST asks for the number of a loop: `for turn in range(world): if turn == rank`."""
        sides = (test.left, *test.comparators) if isinstance(test, ast.Compare) else ()
        return any(isinstance(each, ast.Name) and each.id in self.turning for each in sides)

    @property
    def turning(self) -> set[str]:
        """The names that loops under way count with."""
        targets = (each.node.target for each in self.loops if isinstance(each.node, ast.For))
        return {each.id for each in targets if isinstance(each, ast.Name)}

    def _narrow(self, test: ast.expr, frame: Frame) -> None:
        """What TEST, which holds, says of a name: isinstance(value, torch.Tensor)."""
        match test:
            case ast.Call(func=called, args=[ast.Name(id=name), *classes]):
                value = frame.values.get(name)
            case _:
                return
        if not isinstance(value, Unknown | Tensor):
            return
        asked, kinds = self.evaluate(called, frame), tuple[Value, ...]()
        if asked == External("builtins.isinstance"):
            kinds = tuple(self.evaluate(each, frame) for each in classes)
        if kinds and _is_of_modules(kinds):  # isinstance(layer, nn.BatchNorm2d): layer.float()
            frame.store(name, given_model(None))
        elif isinstance(value, Unknown) and (asked == External("torch.is_tensor") or kinds == (_TENSOR,)):
            frame.store(name, Tensor(self.spot(test), is_open=True, is_entry=True))

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

    def choose_return(self, frame: Frame) -> None:
        """Returns from a function that gives something for each of several kinds: one of them."""
        raise Return(self.evaluate(frame.skipped[0], frame))


def _is_refused_else(node: ast.AST) -> bool:
    """Whether NODE is an `if` whose other arm raises: else: raise ValueError(kind)."""
    if not isinstance(node, ast.If) or not node.orelse:
        return False
    return _ends_program(node.orelse[-1]) and not _ends_program(node.body[-1])


def _ends_program(statement: ast.stmt) -> bool:
    """Whether STATEMENT raises an error, or exits: print("unknown model"); exit(1)."""
    return isinstance(statement, ast.Raise) or (isinstance(statement, ast.Expr) and leaves([statement]))


@once
def _behind_else(function: ast.AST) -> frozenset[int]:
    """The conditions that stand in the `else` of another one in FUNCTION; `elif` is none."""
    tests = [each for each in ast.walk(function) if isinstance(each, ast.If)]
    inside = (one for each in tests for one in each.orelse if one.col_offset > each.col_offset)
    return frozenset(id(each) for one in inside for each in ast.walk(one) if isinstance(each, ast.If))


@once
def _asks_for_none(test: ast.expr) -> bool:
    """Whether TEST asks whether things are None."""
    compared = (each for each in ast.walk(test) if isinstance(each, ast.Compare))
    return any(isinstance(one, ast.Constant) and one.value is None for each in compared for one in each.comparators)


@once
def _is_beside(node: ast.If) -> bool:
    """Whether NODE asks for a remainder and holds no step of a training."""
    is_left = bool(node.body) and isinstance(node.body[-1], ast.Continue | ast.Break | ast.Return)
    if is_left or not any(isinstance(each, ast.Mod) for each in ast.walk(node.test)):
        return False
    inside = (each for one in (*node.body, *node.orelse) for each in ast.walk(one))
    called = (ast.unparse(each.func).rpartition(".")[2].lower() for each in inside if isinstance(each, ast.Call))
    return not any(map(_STEPS.search, called))


def _is_of_modules(kind: Value) -> bool:
    """Whether KIND is a class of modules, or a tuple of such."""
    if isinstance(kind, tuple):
        return all(map(_is_of_modules, kind))
    if isinstance(kind, Class):
        return any(kind_of(each) == "module" for each in kind.externals)
    return isinstance(kind, External) and kind_of(kind.name) == "module"


def _stored(node: ast.If) -> Iterator[str]:
    """The names that are given a value in the branches of NODE."""
    for statement in (*node.body, *node.orelse):
        for each in ast.walk(statement):
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                yield each.id


def _takes_broadcast(node: ast.If, name: str, frame: Frame) -> bool:
    """Whether a branch of NODE gives NAME an element of a list that was sent to all ranks."""
    for statement in (*node.body, *node.orelse):
        match statement:
            case ast.Assign(targets=[ast.Name(id=target)], value=ast.Subscript(value=ast.Name(id=source))):
                held = (frame.home(source) or {}).get(source)
                is_sent = isinstance(held, list) and any(getattr(each, "why", "") == BROADCAST for each in held)
                if target == name and is_sent:
                    return True
    return False


def leaves(body: list[ast.stmt]) -> bool:
    """Whether BODY ends by leaving: a guard."""
    last = body[-1] if body else None
    if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call):
        called = last.value.func
        if isinstance(called, ast.Name):
            return called.id in ("exit", "quit")
        return isinstance(called, ast.Attribute) and called.attr in ("exit", "_exit", "error", "skip")
    return isinstance(last, _LEAVES)
