"""What a module is assembled from, as far as its source tells: its parameters, its parts, and where knowledge ends."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeAlias

Value: TypeAlias = Any  # a literal, a list or dict of values, or one of the classes below


class Plain(Enum):
    """A value that is not known, but is no module and no parameter."""

    PLAIN = "plain"


PLAIN = Plain.PLAIN


@dataclass(eq=False, slots=True)
class Weight:
    """One parameter. Two names with the same Weight are tied, and torch numbers it once."""


@dataclass(frozen=True, slots=True)
class Lost:
    """What cannot be known, and why. module: it is no parameter itself; rest: it stands for any number of things."""

    why: str
    module: bool = False
    rest: bool = False


@dataclass(eq=False, slots=True)
class Part:
    """A module. own: its direct parameters; parts: its submodules, both in the order of registration.

    plain: its other attributes. kind: the torch class of a container; made: the class of the files that it is of.
    """

    own: dict[str, Weight | Lost | None] = field(default_factory=dict)
    parts: dict[str, Part | Lost | None] = field(default_factory=dict)
    plain: dict[str, Value] = field(default_factory=dict)
    kind: str = ""
    made: Made | None = None

    def put(self, name: str, value: Value) -> None:
        """What nn.Module.__setattr__ does: a name that is registered already keeps its place."""
        if isinstance(value, Weight):
            self.drop(name, self.own)
            self.own[name] = value
        elif isinstance(value, Part) or (isinstance(value, Lost) and (value.module or name in self.parts)):
            self.drop(name, self.parts)
            self.parts[name] = value
        elif isinstance(value, Lost) or (value is None and name in self.own):
            self.own[name] = value
        elif value is None and name in self.parts:
            self.parts[name] = value
        else:
            self.plain[name] = value

    def drop(self, name: str, but: dict[str, Any] | None = None) -> None:
        """Forgets NAME, other than in the dict BUT."""
        for held in (self.own, self.parts, self.plain):
            if held is not but:
                held.pop(name, None)

    def get(self, name: str) -> Value:
        """Raises KeyError where NAME was never set."""
        for held in (self.own, self.parts, self.plain):
            if name in held:
                return held[name]
        raise KeyError(name)

    def add(self, value: Value) -> None:
        """Puts VALUE at the end of a container that counts."""
        (self.own if self.kind == "ParameterList" else self.parts)[str(len(self.parts) + len(self.own))] = value

    def lose(self, lost: Lost) -> None:
        """From here on nothing is known; whatever was changed may have been a parameter of its own."""
        (self.parts if lost.module else self.own)[f"? {len(self.parts)} {len(self.own)}"] = lost


@dataclass(frozen=True, slots=True)
class Made:
    """A thing with a name: a class or function of the files (scope, with its script), or an import (its real name)."""

    name: str
    script: Any = None
    scope: Any = None

    def __deepcopy__(self, memo: dict[int, Any]) -> Made:
        return self


def named(part: Part) -> tuple[list[str], Lost | None]:
    """The names of list(part.named_parameters()), up to the first thing that is not known."""
    found: list[str] = []
    return found, _walk(part, "", found, set())


def _walk(part: Part, prefix: str, found: list[str], seen: set[int]) -> Lost | None:
    if id(part) in seen:
        return None
    seen.add(id(part))
    for name, weight in part.own.items():
        if isinstance(weight, Lost):
            return weight
        if weight is not None and id(weight) not in seen:
            seen.add(id(weight))
            found.append(prefix + name)
    for name, inner in part.parts.items():
        lost = _walk(inner, f"{prefix}{name}.", found, seen) if isinstance(inner, Part) else inner
        if lost is not None:
            return lost
    return None


def inside(value: Value) -> list[Part]:
    """Every module below VALUE, once."""
    found: dict[int, Part] = {}
    ahead = [value]
    while ahead:
        part = ahead.pop()
        held = [*part.parts.values(), *part.plain.values()] if isinstance(part, Part) else []
        fresh = [each for each in held if isinstance(each, Part) and id(each) not in found]
        found.update((id(each), each) for each in fresh)
        ahead += fresh
    return list(found.values())


def is_cut(value: Value) -> bool:
    """Whether a list or dict is known only up to some place."""
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return any(isinstance(each, Lost) and each.rest for each in inside)


class Meeting:
    """What is left to be known where the code may have gone either of two ways: WHY says which."""

    def __init__(self, why: str) -> None:
        self.why = why
        self._one: dict[int, tuple[Value, Value]] = {}
        self._other: dict[int, Value] = {}

    def meet(self, one: Value, other: Value) -> Value:
        """What holds of ONE and of OTHER; parts, lists and dicts are changed in place, in ONE."""
        if isinstance(one, Part | Weight) and type(one) is type(other):
            return self._same(one, other)
        if isinstance(one, list | dict) and type(one) is type(other):
            join = self._lists if isinstance(one, list) else self.dicts
            return join(one, other)
        if isinstance(one, Part | Weight | Lost) or isinstance(other, Part | Weight | Lost):
            kinds = [isinstance(each, Weight) or (isinstance(each, Lost) and not each.module) for each in (one, other)]
            return one if isinstance(one, Lost) and not one.module else Lost(self.why, module=not any(kinds))
        if isinstance(one, tuple | list | dict | Made) and one != other:
            return Lost(self.why)
        return one if type(one) is type(other) and one == other else PLAIN

    def _same(self, one: Part | Weight, other: Part | Weight) -> Value:
        """A thing that is shared on one way and not on the other is lost."""
        known = self._one.get(id(one))
        if known is None and id(other) not in self._other:
            self._one[id(one)], self._other[id(other)] = (one, other), other
            if isinstance(one, Part) and isinstance(other, Part):
                self._parts(one, other)
            return one
        return one if known is not None and known[1] is other else Lost(self.why, module=isinstance(one, Part))

    def _parts(self, one: Part, other: Part) -> None:
        self.dicts(one.own, other.own)
        self.dicts(one.parts, other.parts, module=True)
        for name in [*one.plain]:
            one.plain[name] = self.meet(one.plain[name], other.plain.get(name, Lost(self.why)))

    def _lists(self, one: Value, other: Value) -> Value:
        shared = [self.meet(*pair) for pair in zip(one, other, strict=False)]
        one[:] = shared + ([Lost(self.why, module=True, rest=True)] if len(one) != len(other) else [])
        return one

    def dicts(self, one: Value, other: Value, *, module: bool = False) -> Value:
        """Changes ONE: after the first name in which they differ, everything is lost."""
        kept: dict[str, Value] = {}
        for name, second in zip(one, other, strict=False):
            if name != second:
                break
            kept[name] = self.meet(one[name], other[name])
        if len(kept) < max(len(one), len(other)):
            kept["?"] = Lost(self.why, module=module, rest=True)
        one.clear()
        one.update(kept)
        return one

    def variables(self, one: dict[str, Value], other: dict[str, Value]) -> None:
        """Changes ONE, the variables of a function: their order says nothing."""
        for name in [*one]:
            one[name] = self.meet(one[name], other.get(name, Lost(self.why)))
