"""Follows the __init__ of a module's class, statement by statement, without running it: what it registers, in order."""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace

from torchtriage.examine.source.parameters.assembly import PLAIN, Made, Meeting, Part, Value
from torchtriage.examine.source.parameters.evaluate import STEPS, Frame
from torchtriage.examine.source.parameters.inherit import Ended, Inheritance
from torchtriage.examine.source.script import Script


class Builder(Inheritance):
    """What the classes of SCRIPTS register."""

    def __init__(self, scripts: Sequence[Script]) -> None:
        super().__init__()
        self.scripts = scripts
        self._known: dict[str, list[Made]] = {}
        for script in scripts:
            for name, scope in script.facts.scopes[0].inner.items():
                self._known.setdefault(name, []).append(Made(name, script, scope))

    def find(self, name: str) -> Made | None:
        head, _, last = name.rpartition(".")
        found = self._known.get(last, [])
        fits = head.partition(".")[0] not in ("torch", "builtins") and len(found) == 1
        return found[0] if fits else None

    def run(self, body: Sequence[ast.stmt], frame: Frame) -> Ended | None:
        for place, node in enumerate(body):
            self.steps += 1
            if self.steps > STEPS:
                return self._give_up(node, frame)
            ended = self._branch(node, body[place + 1 :], frame) if isinstance(node, ast.If) else self._do(node, frame)
            if ended is not None:
                return None if ended.how == "rest" else ended
        return None

    def _give_up(self, node: ast.AST, frame: Frame, why: str = "too much to be followed") -> Ended:
        lost = self.lost(node, frame, why)
        if frame.receiver is not None:
            frame.receiver.lose(lost)
        return Ended("return", lost)

    def _do(self, node: ast.stmt, frame: Frame) -> Ended | None:
        match node:
            case ast.Return() | ast.Raise() | ast.Break() | ast.Continue():
                value = self.value(node.value, frame) if isinstance(node, ast.Return) else None
                return Ended(type(node).__name__.lower(), value)
            case ast.With() | ast.AsyncWith():
                return self.run(node.body, frame)
            case ast.For() | ast.While() | ast.AsyncFor():
                return self._loop(node, frame)
            case ast.Try() | ast.TryStar():
                return self._attempt(node, frame)
            case ast.Match():
                return self._matched(node, frame)
        self._bound(node, frame)
        return None

    def _bound(self, node: ast.stmt, frame: Frame) -> None:
        """Statements that bind names, or only call something."""
        match node:
            case ast.Assign(targets=targets, value=value):
                self._assign(targets, self.value(value, frame), frame)
            case ast.AnnAssign(target=target, value=value) if value is not None:
                self._assign([target], self.value(value, frame), frame)
            case ast.AugAssign(target=target, op=op, value=value):
                self._assign([target], self.value(ast.copy_location(ast.BinOp(target, op, value), node), frame), frame)
            case ast.Expr(value=value):
                self.value(value, frame)
            case ast.Delete(targets=targets):
                self._delete(targets, frame)
            case ast.FunctionDef(name=name) if name in frame.scope.inner:
                frame.variables[name] = Made(name, frame.script, frame.scope.inner[name])

    def _matched(self, node: ast.Match, frame: Frame) -> Ended | None:
        first, *more = node.cases
        if isinstance(first.pattern, ast.MatchAs) and first.pattern.pattern is None and first.guard is None:
            return self.run(first.body, frame)
        others = [ast.copy_location(ast.Match(node.subject, more), node)] if more else []
        return self._ways(node, first.body, others, frame, frame.script.source(node.subject))

    def _attempt(self, node: ast.Try | ast.TryStar, frame: Frame) -> Ended | None:
        others: list[ast.stmt] = []
        for handler in reversed(node.handlers):
            more = [ast.ExceptHandler(None, None, others)] if others else []
            others = [ast.copy_location(ast.Try(handler.body, more, [], []), node)] if more else handler.body
        ended = self._ways(node, [*node.body, *node.orelse], others, frame, "an exception") if others else None
        ended = ended if others else self.run([*node.body, *node.orelse], frame)
        return self.run(node.finalbody, frame) or ended

    def _assign(self, targets: list[ast.expr], value: Value, frame: Frame) -> None:
        for target in targets:
            match target:
                case ast.Attribute(value=inner, attr=name):
                    host = self.value(inner, frame)
                    if isinstance(host, Part):
                        host.put(name, self._held(value, target, frame))
                case ast.Subscript(value=inner, slice=key):
                    self._place(self.value(inner, frame), self.value(key, frame), value, target, frame)
                case ast.Tuple(elts=parts) if isinstance(value, tuple | list) and len(value) == len(parts):
                    for part, each in zip(parts, value, strict=True):
                        self._assign([part], each, frame)
                case ast.Tuple(elts=parts):
                    for part in parts:
                        self._assign([part], PLAIN if value is PLAIN else self.lost(target, frame), frame)
                case _:
                    self.bind(target, value, frame)

    def _held(self, value: Value, node: ast.expr, frame: Frame) -> Value:
        """VALUE as an attribute; an import of another file may be a module as it stands there."""
        if not isinstance(value, Made) or value.scope is not None or value.name.rpartition(".")[2][:1].isupper():
            return value
        known = (
            value.name.startswith(("torch.", "builtins.")) or value.name.partition(".")[0] in sys.stdlib_module_names
        )
        return value if known else self.lost(node, frame, f"{value.name} is not known")

    def _place(self, host: Value, key: Value, value: Value, node: ast.expr, frame: Frame) -> None:
        if isinstance(host, Part):
            name = str(key) if isinstance(key, str | int) and key != -1 else None
            host.put(name, value) if name is not None else host.lose(self.lost(node, frame, module=True))
        elif isinstance(host, dict) and isinstance(key, str | int):
            host[key] = value
        elif isinstance(host, list):
            host[:] = [replace(self.lost(node, frame, module=True), rest=True)]
        elif frame.receiver is not None and ("_modules" in (shown := ast.dump(node)) or "_parameters" in shown):
            frame.receiver.lose(self.lost(node, frame))

    def _delete(self, targets: list[ast.expr], frame: Frame) -> None:
        for target in targets:
            if isinstance(target, ast.Attribute) and isinstance(host := self.value(target.value, frame), Part):
                host.drop(target.attr)

    # where the code may go either of two ways

    def _branch(self, node: ast.If, rest: Sequence[ast.stmt], frame: Frame) -> Ended | None:
        truth = self.truth(node.test, frame)
        if truth is not None:
            return self.run(node.body if truth else node.orelse, frame)
        ends = [bool(body) and isinstance(body[-1], ast.Raise) for body in (node.body, node.orelse)]
        if any(ends):
            return self.run(node.orelse if ends[0] else node.body, frame)
        leaves = [bool(body) and isinstance(body[-1], ast.Return) for body in (node.body, node.orelse)]
        ways = [
            [*body, *([] if left or not any(leaves) else rest)]
            for body, left in zip((node.body, node.orelse), leaves, strict=True)
        ]
        ended = self._ways(node, ways[0], ways[1], frame, frame.script.source(node.test))
        return ended or (Ended("rest") if any(leaves) else None)

    def _ways(
        self, node: ast.stmt | ast.expr, one: Sequence[ast.stmt], other: Sequence[ast.stmt], frame: Frame, on: str
    ) -> Ended | None:
        """Goes both ways, and keeps what both come to."""
        self.steps += 100  # what a copy costs
        why = f"it depends on {on[:60]}"
        meeting = Meeting(self.lost(node, frame, why).why)
        frames = self.frames if frame in self.frames else [*self.frames, frame]
        held = [each.variables for each in frames]
        receivers = [each.receiver for each in frames]
        copied, copies = deepcopy((held, receivers))
        first = self.run(one, frame)
        for each, variables, receiver in zip(frames, copied, copies, strict=True):
            each.variables, each.receiver = variables, receiver
        second = self.run(other, frame)
        for each, variables, receiver in zip(frames, held, receivers, strict=True):
            meeting.meet(receiver, each.receiver)
            meeting.variables(variables, each.variables)
            each.variables, each.receiver = variables, receiver
        if first is None or second is None or first.how != second.how:
            odd = {each.how for each in (first, second) if each is not None} - {"raise"}
            return self._give_up(node, frame, why) if odd else None
        return Ended(first.how, meeting.meet(first.value, second.value))

    def either(self, node: ast.IfExp, frame: Frame) -> Value:
        target = ast.Name("? either", ast.Store())
        one, other = ([ast.copy_location(ast.Assign([target], each), node)] for each in (node.body, node.orelse))
        self._ways(node, one, other, frame, frame.script.source(node.test))
        return frame.variables.pop(target.id, self.lost(node, frame))

    def _loop(self, node: ast.For | ast.While | ast.AsyncFor, frame: Frame) -> Ended | None:
        if isinstance(node, ast.While) and self.truth(node.test, frame) is False:
            return self.run(node.orelse, frame)
        items = self.items(self.value(node.iter, frame)) if isinstance(node, ast.For) else None
        if items is None or not isinstance(node, ast.For):
            head = node.test if isinstance(node, ast.While) else node.iter
            on = f"how often the loop over {frame.script.source(head)} turns"
            if isinstance(node, ast.For):
                self.bind(node.target, PLAIN, frame)
            self._ways(node, node.body, [], frame, on)
            return None
        for item in items:
            self.bind(node.target, item, frame)
            ended = self.run(node.body, frame)
            if ended is not None and ended.how in ("return", "raise"):
                return ended
            if ended is not None and ended.how == "break":
                return None
        return self.run(node.orelse, frame)
