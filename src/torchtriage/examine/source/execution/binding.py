"""Targets: what an assignment, a loop or a `with` gives names, attributes and entries."""

from __future__ import annotations

import ast

from torchtriage.examine.source.execution.autograd import Parameter, Tensor
from torchtriage.examine.source.execution.frames import Frame
from torchtriage.examine.source.execution.machine import Machine
from torchtriage.examine.source.execution.values import External, Object, Operation, Unknown, Value, share_of

ANY_KEY = Unknown("any key")
"""Under which a dict has what is put there under keys that are not known: the names of a model's losses."""

ENVIRONMENT = "os.environ"


class Binding(Machine):
    """Targets of an execution."""

    def bind(self, target: ast.expr, value: Value, frame: Frame) -> None:
        """Gives the names, attributes and entries of TARGET their part of VALUE."""
        match target:
            case ast.Name(id=name):
                self.replaces((frame.home(name) or {}).get(name), value, target)
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
        if isinstance(held, Object) and held.kind == "defaultdict":
            self._put(held.state["items"], key, value, node)
        elif isinstance(held, list):
            self._put_in_list(held, key, value, node)
        elif isinstance(held, dict):
            self._put_in_dict(held, ANY_KEY if isinstance(key, Unknown) else key, value, node)
        elif isinstance(held, Tensor):
            self._put_in_tensor(held, value, node)
        elif isinstance(held, External) and isinstance(key, str):  # os.environ["NAME"] = "1"
            self.assign(held, key, value, node)
        elif isinstance(held, Operation) and isinstance(held.receiver, Object):  # model.classifier[6] = nn.Linear(…)
            self.assign(held.receiver, f"{held.name}[{key}]", value, node)
        elif isinstance(held, Object) and held.kind == "module" and isinstance(held.state.get("items"), dict):
            held.state["items"][key] = value
        elif isinstance(held, Object):
            self.call(self.attribute(held, "__setitem__", node), (key, value), {}, node)

    def _put_in_dict(self, held: dict[Value, Value], key: Value, value: Value, node: ast.AST) -> None:
        if not is_hashable(key):
            return
        if key is ANY_KEY:
            _keep_handles(held.get(key))
        held[key] = value
        self.note_kept(held, value, node)

    def _put_in_tensor(self, held: Tensor, value: Value, node: ast.AST) -> None:
        held.share = held.share or share_of((value,))  # totals[0] += right.sum()
        for each in held.memory if not isinstance(value, int | float) else ():
            each.birth = None  # what it holds comes from the host
        self.fill(held, node)
        if isinstance(value, Tensor) and not isinstance(held, Parameter):
            self.take_in(held, value, node)

    def _put_in_list(self, held: list[Value], key: Value, value: Value, node: ast.AST) -> None:
        place = 0 if isinstance(key, Unknown) and isinstance(value, Object) else key  # one of them
        if isinstance(place, int) and -len(held) <= place < len(held):
            held[place] = value
            self.note_kept(held, value, node)

    def _unpack(self, parts: list[ast.expr], value: Value, frame: Frame) -> None:
        starred = next((place for place, each in enumerate(parts) if isinstance(each, ast.Starred)), None)
        is_enough = len(value) >= len(parts) - 1 if isinstance(value, list | tuple) else False
        if isinstance(value, list | tuple) and (len(value) == len(parts) or (starred is not None and is_enough)):
            behind = len(parts) - (starred or 0) - 1
            for place, part in enumerate(parts):
                if starred is None or place < starred:
                    self.bind(part, value[place] if place < len(value) else Unknown(), frame)
                elif place == starred and isinstance(part, ast.Starred):
                    self.bind(part.value, list(value[place : len(value) - behind]), frame)
                else:
                    self.bind(part, value[place - len(parts)], frame)
            return
        if isinstance(value, Object) and value.cls is not None and value.cls.fields is not None:  # a named tuple
            value = [value.values.get(name, Unknown(name)) for name in value.cls.fields]
        is_other = isinstance(value, tuple) and starred is None  # it raises: none of its parts is any of these
        for place, part in enumerate(parts):
            inner = part.value if isinstance(part, ast.Starred) else part
            self.bind(inner, Unknown() if is_other else self.item(value, place, part), frame)


def is_hashable(value: Value) -> bool:
    """Whether VALUE may be a key."""
    return not isinstance(value, list | dict | set | slice) and not (
        isinstance(value, tuple) and any(not is_hashable(each) for each in value)
    )


def _keep_handles(value: Value) -> None:
    """VALUE stays under another key that nobody knows: who goes through a dict of handles by peer waits for it, too."""
    for each in value if isinstance(value, list | tuple) else (value,):
        if isinstance(each, Object) and each.kind == "handle":
            each.has_escaped = True
