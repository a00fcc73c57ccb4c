"""Which part a value plays in a training: model, optimizer, scheduler, scaler, criterion, loader, sampler."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache, cached_property, lru_cache

from msgspec import Struct

from torchtriage.examine.source.definitions import Origin
from torchtriage.examine.source.facts import Call, Facts, Scope, dotted
from torchtriage.examine.source.names import Names, matches, table
from torchtriage.examine.source.torch_api.symbols import symbols
from torchtriage.examine.source.trace import Trace

_MODULE, _OPTIMIZER = "torch.nn.Module", "torch.optim.Optimizer"


class Part(Struct, frozen=True):
    """A role and how it is known.

    by: "made" by a constructor that settles it, "annotated", or by "habit": a telling name together with a telling use,
    of a "parameter" or of a value from unknown code ("unknown"). made: the constructor call, its name and scope.
    """

    role: str
    by: str
    made: ast.Call | None = None
    name: str = ""
    scope: Scope | None = None


class _Habits(Struct, frozen=True):
    role: str
    made: tuple[str, ...]
    named: frozenset[str]
    used: frozenset[str]
    settles: frozenset[str]


@cache
def _habits() -> tuple[_Habits, ...]:
    return tuple(
        _Habits(
            role, tuple(row["made"]), frozenset(row["named"]), frozenset(row["used"]), frozenset(row.get("settles", ()))
        )
        for role, row in table()["roles"].items()
    )


@lru_cache(maxsize=4096)
def _named(word: str) -> _Habits | None:
    """The role of which things are called WORD, as `optimizer` or `d_optimizer` are."""
    names = {word, *(word[at + 1 :] for at, letter in enumerate(word) if letter == "_")}
    return next((habits for habits in _habits() if not names.isdisjoint(habits.named)), None)


@lru_cache(maxsize=4096)
def gives_model(name: str) -> bool:
    """Whether NAME is a function of a library that gives a model: torchvision.models.resnet18, X.from_pretrained."""
    lore: dict[str, list[str]] = table()["models"]
    package, _, rest = name.partition(".")
    if any(word in rest for word in lore["others"]):
        return False
    if package in lore["loading"] and rest.rpartition(".")[2] in lore["loads"]:
        return True
    return any(name == each or (each.endswith(".") and name.startswith(each)) for each in lore["built"])


class Roles:
    """The roles of one file."""

    def __init__(self, facts: Facts, names: Names, trace: Trace) -> None:
        self.facts, self.names, self.trace = facts, names, trace

    def parts(self, node: ast.expr | None, scope: Scope) -> list[Part]:
        """Every part that NODE may play, one for each origin that tells."""
        found = (self._part(origin, node) for origin in self.trace.origins(node, scope))
        return [part for part in found if part is not None]

    def entry(self, held: ast.expr, key: str | int, scope: Scope) -> list[Part]:
        """Every part that the entry KEY of HELD may play: parts[name], for each name that a loop takes."""
        found = (self._part(origin, held) for origin in self.trace.entry(held, key, scope))
        return [part for part in found if part is not None]

    def plays(self, node: ast.expr | None, scope: Scope, role: str) -> bool:
        """Whether NODE may play ROLE."""
        return any(part.role == role for part in self.parts(node, scope))

    def made(self, node: ast.expr | None, scope: Scope, role: str) -> list[Part]:
        """The constructor calls of ROLE from which NODE may come."""
        return [part for part in self.parts(node, scope) if part.role == role and part.made is not None]

    def of_class(self, name: str) -> str | None:
        """The role that an instance of the class with that real NAME plays."""
        if name in symbols().parameters:  # they are of torch.nn, too
            return None
        for habits in _habits():
            if habits.role != "model" and matches(name, habits.made):
                return habits.role
        made = any(h.role == "model" and matches(name, h.made) for h in _habits()) or (bool(name) and gives_model(name))
        return "model" if made else None

    def _part(self, origin: Origin, node: ast.expr | None) -> Part | None:
        call = origin.call
        if origin.is_parameter:
            role = self._annotated(origin) or self._called_after(origin)
            return Part(role, "annotated") if role else self._habitual(origin, node, "parameter")
        if call is None:
            return self._habitual(origin, node, "unknown")
        name = self.names.resolve(call.func, origin.scope)
        role = self.of_class(name) or self._own(call, origin.scope) or self._chosen(call.func, origin.scope)
        if role is not None:
            return Part(role, "made", call, name, origin.scope)
        return self._habitual(origin, node, "unknown")

    def _annotated(self, origin: Origin) -> str | None:
        note = origin.node
        if isinstance(note, ast.BinOp):  # X | None
            note = note.left
        if isinstance(note, ast.Subscript):  # Optional[X]
            note = note.slice
        if isinstance(note, ast.Name) and (own := self.names.definition(note.id, origin.scope)) is not None:
            return self._subclass(own)
        return self.of_class(self.names.resolve(note, origin.scope))

    def _called_after(self, origin: Origin) -> str | None:
        """The role of a parameter that is called after a class of this file."""
        called = origin.node is None and origin.store is not None and origin.store.name in self.facts.calls
        host = self.trace.noted(origin) if called else None
        return self._subclass(host) if host is not None else None

    def _own(self, call: ast.Call, scope: Scope) -> str | None:
        made = self.trace.definition(call.func, scope)
        return self._subclass(made) if made is not None and made.kind == "class" else None

    def _chosen(self, called: ast.expr, scope: Scope) -> str | None:
        """The role of what is made by getattr(torch.optim, name)(…), or by an entry of a dict of such classes."""
        match called:
            case ast.Call(func=ast.Name(id="getattr"), args=[module, _, *_]):
                # a class whose name nobody knows yet: as any class of that module
                return self.of_class(f"{self.names.resolve(module, scope)}.Any")
            case ast.Subscript(value=table):
                ends = self.trace.origins(table, scope)
                dicts = [end.node for end in ends if isinstance(end.node, ast.Dict) and end.node.values]
                roles = {self.of_class(self.names.resolve(each, scope)) for one in dicts for each in one.values}
                return roles.pop() if len(roles) == 1 and len(dicts) == len(ends) else None
        return None

    def _subclass(self, host: Scope) -> str | None:
        bases = self.trace.bases(host)
        return "model" if _MODULE in bases or any(self.of_class(base) == "model" for base in bases) else None

    def _habitual(self, origin: Origin, node: ast.expr | None, by: str) -> Part | None:
        """Two signals: a name by which such things are called, and a use that only such things have."""
        text = origin.store.name if origin.store is not None else dotted(node)
        habits = _named(text.rpartition(".")[2].lower())
        if habits is not None:
            return Part(habits.role, by) if self._is_used(text, habits) else None
        role = next((role for role, words in self._settled.items() if text.rpartition(".")[2] in words), None)
        return Part(role, by) if role is not None else None

    @cached_property
    def _settled(self) -> dict[str, set[str]]:
        """The words on which a method is called that tells the role by itself: tower.parameters()."""
        return {habits.role: set(self._receivers(habits.settles)) - {""} for habits in _habits() if habits.settles}

    def _receivers(self, tails: frozenset[str]) -> Iterator[str]:
        for tail in tails:
            yield from (dotted(call.receiver).rpartition(".")[2] for call in self._calls(tail))

    def _is_used(self, text: str, habits: _Habits) -> bool:
        last = text.rpartition(".")[2]
        if not habits.used or (habits.role in ("model", "criterion") and last in self.facts.calls):
            return True
        return any(
            dotted(call.receiver).rpartition(".")[2] == last for tail in habits.used for call in self._calls(tail)
        )

    def _calls(self, tail: str) -> list[Call]:
        return self.facts.calls.get(tail, [])
