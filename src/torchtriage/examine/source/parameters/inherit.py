"""What a class or function of the files comes to when it is called: inherited, bound to its arguments, followed."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torchtriage.examine.source.facts import Scope
from torchtriage.examine.source.parameters.assembly import PLAIN, Lost, Made, Part, Value, Weight, named
from torchtriage.examine.source.parameters.calls import Calls
from torchtriage.examine.source.parameters.evaluate import STEPS, Frame
from torchtriage.examine.source.parameters.layers import CONTAINERS, Given, layer
from torchtriage.examine.source.parameters.usage import Usage
from torchtriage.examine.source.script import Script

_DEEP = 24
_EMPTY = {"torch.nn.Module", "pytorch_lightning.LightningModule", "lightning.LightningModule", "builtins.object"}
_ASIDE = ("abc.", "typing.", "builtins.object")
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Ended:
    """How a piece of code ended before its last statement: return with a value, or break, continue, raise."""

    how: str
    value: Value = None


class Inheritance(Calls):
    """Classes and functions; what a statement does is left to the builder."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self.followed: set[int] = set()
        self._usages: dict[int, Usage] = {}

    def run(self, body: Sequence[ast.stmt], frame: Frame) -> Ended | None:
        raise NotImplementedError

    # classes

    def bases(self, made: Made) -> list[Made]:
        """The bases of a class: of the files (with their scope), or by their real names."""
        nodes = made.scope.node.bases if isinstance(made.scope.node, ast.ClassDef) else []
        frame = Frame(made.script, made.scope.parent or made.scope, Usage(made.script, None))
        values = (self.value(node.value if isinstance(node, ast.Subscript) else node, frame) for node in nodes)
        return [value if isinstance(value, Made) else Made("?") for value in values]

    def lineage(self, made: Made, through: tuple[Made, ...] = ()) -> Iterator[Made]:
        """MADE and everything that it inherits from."""
        yield made
        if made.scope is not None and made not in through and len(through) < _DEEP:
            for base in self.bases(made):
                yield from self.lineage(base, (*through, made))

    def method(self, made: Made, name: str) -> tuple[Made, Made] | None:
        for each in self.lineage(made):
            if each.scope is not None and name in each.scope.inner:
                return Made(name, each.script, each.scope.inner[name]), each
        return None

    def instantiate(self, made: Made, given: Given, node: ast.AST, frame: Frame) -> Value:
        names = {each.name for each in self.lineage(made) if each.scope is None}
        if not any(name in _EMPTY or name.startswith("torch.nn.") for name in names) or names == {"builtins.object"}:
            return self.lost(node, frame, module=True) if "?" in names or names - {"builtins.object"} else PLAIN
        part = Part(made=made)
        if (found := self.method(made, "__init__")) is not None:
            self.invoke(found[0], given, part, found[1])
        else:
            self._start(part, self.bases(made), given)
        self._later(part, made)
        return part

    def _later(self, part: Part, made: Made) -> None:
        """What methods that nothing here calls may register afterwards."""
        for each in self.lineage(made):
            for stores in each.scope.attributes.values() if each.scope is not None else ():
                for store in stores:
                    if store.how != "assign" or id(store.scope) in self.followed:
                        continue
                    value = self.value(
                        store.value, Frame(each.script, store.scope, self._usage(each.script, store.scope))
                    )
                    if isinstance(value, Weight) or (isinstance(value, Part) and any(named(value))):
                        name = f"{store.scope.name} may register {store.name}"
                        where = f"{each.script.text.path}:{getattr(store.node, 'lineno', 1)}"
                        part.lose(Lost(f"{where}: {name}", module=isinstance(value, Part)))

    def inherited(self, frame: Frame, name: str, given: Given, node: ast.Call) -> Value:
        if frame.owner is None or frame.receiver is None:
            return self.lost(node, frame)
        if name == "__init__":
            self._start(frame.receiver, self.bases(frame.owner), given)
            return None
        for base in self.bases(frame.owner):
            if base.scope is not None and (found := self.method(base, name)) is not None:
                return self.invoke(found[0], given, frame.receiver, found[1])
        return PLAIN

    def _start(self, part: Part, bases: list[Made], given: Given) -> None:
        """What the __init__ of BASES registers in PART."""
        own = [found for base in bases if base.scope is not None and (found := self.method(base, "__init__"))]
        if len(own) > 1:
            part.lose(Lost(f"{given.why}: several bases with an __init__"))
        elif own:
            self.invoke(own[0][0], given, part, own[0][1])
        else:
            roots = [each.name for base in bases for each in self.lineage(base) if each.scope is None]
            for name in (name for name in roots if name not in _EMPTY and not name.startswith(_ASIDE)):
                kind = name.rpartition(".")[2] if name.startswith("torch.nn.") else ""
                part.kind = kind if kind in CONTAINERS else part.kind
                whole = self.filled(Part(kind=kind), given) if kind in CONTAINERS else layer(kind, given)
                if whole is None:
                    part.lose(Lost(f"{given.why}: what {name} registers is not known"))
                else:
                    part.own.update(whole.own)
                    part.parts.update(whole.parts)

    # functions

    def invoke(self, made: Made, given: Given, receiver: Part | None, owner: Made | None = None) -> Value:
        function = made.scope.node
        if len(self.frames) > _DEEP or not isinstance(function, _Function) or self.steps > STEPS:
            lost = Lost(f"{given.why}: too deep to be followed")
            if receiver is not None:
                receiver.lose(lost)
            return lost
        if owner is None and receiver is not None and receiver.made is not None:
            owner = (self.method(receiver.made, made.name) or (None, None))[1]
        self.followed.add(id(made.scope))
        around = next((each.variables for each in reversed(self.frames) if each.scope is made.scope.parent), {})
        frame = Frame(made.script, made.scope, self._usage(made.script, made.scope), dict(around), receiver, owner)
        self._arguments(function, given, frame)
        self.frames.append(frame)
        ended = self.run(function.body, frame)
        self.frames.pop()
        return ended.value if ended is not None and ended.how == "return" else None

    def _arguments(self, function: _Function, given: Given, frame: Frame) -> None:
        names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
        static = any(isinstance(each, ast.Name) and each.id == "staticmethod" for each in function.decorator_list)
        positional = list(given.positional)
        if frame.receiver is not None and not static:
            positional.insert(0, frame.receiver)
        defaults = dict(zip(reversed(names), reversed(function.args.defaults), strict=False))
        defaults.update(
            {a.arg: d for a, d in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True) if d}
        )
        outer = Frame(frame.script, frame.scope.parent or frame.scope, frame.usage)
        for place, name in enumerate([*names, *(each.arg for each in function.args.kwonlyargs)]):
            if place < len(positional) and place < len(names):
                frame.variables[name] = positional[place]
            elif name in given.keywords:
                frame.variables[name] = given.keywords[name]
            else:
                frame.variables[name] = self._default(name, defaults.get(name), given, outer, function)
        if function.args.vararg is not None:
            rest: Value = tuple(positional[len(names) :])
            frame.variables[function.args.vararg.arg] = Lost(given.why) if given.is_open else rest
        if function.args.kwarg is not None:
            more = {key: value for key, value in given.keywords.items() if key not in frame.variables}
            frame.variables[function.args.kwarg.arg] = Lost(given.why) if given.is_open else more

    def _default(self, name: str, node: ast.expr | None, given: Given, outer: Frame, function: _Function) -> Value:
        """What a parameter is that was not given; where the call is open, a literal default tells only its kind."""
        value = self.value(node, outer) if node is not None else None
        if not given.is_open and node is not None:
            return value
        lost = self.lost(function, outer, f"what {name} is given is not known")
        return PLAIN if isinstance(value, bool | int | float | str | tuple) or value is PLAIN else lost

    def _usage(self, script: Script, function: Scope) -> Usage:
        if id(function) not in self._usages:
            self._usages[id(function)] = Usage(script, function)
        return self._usages[id(function)]
