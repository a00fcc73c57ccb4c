"""Targets: what an assignment, a loop or a `with` gives names, attributes and entries."""

from __future__ import annotations

import ast

from torchtriage.examine.source.execution.frames import Frame
from torchtriage.examine.source.execution.machine import Machine
from torchtriage.examine.source.execution.values import Object, Unknown, Value


class Binding(Machine):
    """Targets of an execution."""

    def bind(self, target: ast.expr, value: Value, frame: Frame) -> None:
        """Gives the names, attributes and entries of TARGET their part of VALUE."""
        match target:
            case ast.Name(id=name):
                frame.store(name, value)
            case ast.Attribute(value=held, attr=name):
                self.assign(self.evaluate(held, frame), name, value, target)
            case ast.Subscript(value=held, slice=key):
                self._put(self.evaluate(held, frame), self.evaluate(key, frame), value, target)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                self._unpack(parts, value, frame)
            case ast.Starred(value=inner):
                self.bind(inner, Unknown("*"), frame)

    def _put(self, held: Value, key: Value, value: Value, node: ast.AST) -> None:
        if (isinstance(held, dict) and is_hashable(key) and not isinstance(key, Unknown)) or (
            isinstance(held, list) and isinstance(key, int) and -len(held) <= key < len(held)
        ):
            held[key] = value
        elif isinstance(held, Object):
            self.call(self.attribute(held, "__setitem__", node), (key, value), {}, node)

    def _unpack(self, parts: list[ast.expr], value: Value, frame: Frame) -> None:
        starred = next((place for place, each in enumerate(parts) if isinstance(each, ast.Starred)), None)
        if isinstance(value, list | tuple) and (len(value) == len(parts) or starred is not None):
            behind = len(parts) - (starred or 0) - 1
            for place, part in enumerate(parts):
                if starred is None or place < starred:
                    self.bind(part, value[place] if place < len(value) else Unknown(), frame)
                elif place == starred and isinstance(part, ast.Starred):
                    self.bind(part.value, list(value[place : len(value) - behind]), frame)
                else:
                    self.bind(part, value[place - len(parts)], frame)
            return
        for place, part in enumerate(parts):
            inner = part.value if isinstance(part, ast.Starred) else part
            self.bind(inner, self.item(value, place, part), frame)


def is_hashable(value: Value) -> bool:
    """Whether VALUE may be a key."""
    return not isinstance(value, list | dict | set | slice) and not (
        isinstance(value, tuple) and any(not is_hashable(each) for each in value)
    )
