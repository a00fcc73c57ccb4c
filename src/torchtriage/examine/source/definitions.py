"""The functions, classes and methods that a name or a call stands for, and where they are called."""

from __future__ import annotations

import ast
import re
from abc import ABC, abstractmethod
from functools import cached_property

from msgspec import Struct

from torchtriage.examine.source.facts import Call, Facts, Scope, Store, dotted
from torchtriage.examine.source.names import Names

_TRAINING = frozenset({"backward", "step", "unscale_", "zero_grad", "clip_grad_norm_", "save"})


class Origin(Struct, frozen=True):
    """The end of a trace: an expression that is no name any more, and the store that gave it its last name.

    A parameter whose callers are unknown ends at its own store, with its annotation as the expression.
    """

    node: ast.expr | None
    scope: Scope
    store: Store | None = None

    @property
    def call(self) -> ast.Call | None:
        return self.node if isinstance(self.node, ast.Call) else None

    @property
    def is_parameter(self) -> bool:
        return self.store is not None and self.store.how == "parameter"


class Definitions(ABC):
    """Looks up what is defined in one file, and in those that it imports."""

    def __init__(self, facts: Facts, names: Names) -> None:
        self.facts, self.names = facts, names
        self._known: dict[tuple[int, int], tuple[Origin, ...]] = {}
        self._open: set[tuple[int, int]] = set()
        self._asked: set[int] = set()
        self._finding: set[int] = set()
        self._draft: dict[tuple[int, int], tuple[Origin, ...]] = {}
        self._draft_sites: dict[int, tuple[Call, ...]] = {}
        self._cuts = 0
        self._sites: dict[int, tuple[Call, ...]] = {}
        self._objects: dict[int, tuple[Call, ...]] | None = None
        self._methods = {name for scope in facts.scopes if scope.kind == "class" for name in scope.inner}

    @abstractmethod
    def origins(self, node: ast.expr | None, scope: Scope) -> tuple[Origin, ...]:
        """Every end at which the value of NODE may start, in the order of the file."""

    def _is_uncut(self, before: int) -> bool:
        """Whether an answer, begun when there were BEFORE cuts, was cut short by no circle that began further out.

        One that was holds until the outermost question is answered, and then no more.
        """
        if self._open or self._asked or self._finding:
            return self._cuts == before
        self._draft.clear()
        self._draft_sites.clear()
        return True

    def definition(self, called: ast.expr, scope: Scope) -> Scope | None:
        """The function, method or class of this file that CALLED stands for."""
        match called:
            case ast.Name(id="cls") if scope.receiver == "cls":  # in a class method
                return scope.host
            case ast.Name(id=name) if found := self.names.definition(name, scope) or self._closure(called, scope):
                return found
            case ast.Attribute() if self.names.links.is_any and (name := self.names.resolve(called, scope)):
                return self.names.links.definition(name, scope)  # utils.save, of a module of this project
            case ast.Attribute(value=value, attr=attr) if attr in self._methods or self.names.links.is_any:
                host = self.instance(value, scope)
                method = self.method(host, attr) if host is not None else None
                return method if method is None or not is_property(method.node) else None  # self.net(x) runs no net()
            case ast.Name() | ast.Attribute() if self._makes_callables and not self.names.resolve(called, scope):
                host = self.instance(called, scope)
                return self.method(host, "__call__") if host is not None else None
        return None

    def _closure(self, called: ast.Name, scope: Scope) -> Scope | None:
        """The function that a function of this file has made: push of push = make_meter(0.9)."""
        stores = self.names.stores(called.id, scope)
        if len(stores) != 1 or stores[0].how != "assign" or not isinstance(stores[0].value, ast.Call):
            return None
        made = self._maker(stores[0].value, stores[0].scope)
        ends = [each.node.value for each in made.returns] if made is not None and made.kind == "function" else []
        found = {id(each): each for end in ends if isinstance(end, ast.Name) and made is not None
                 if (each := made.inner.get(end.id)) is not None and each.kind == "function"}  # fmt: skip
        return next(iter(found.values())) if len(found) == 1 and len(ends) == 1 else None

    def instance(self, node: ast.expr, scope: Scope) -> Scope | None:
        """The class of this file that NODE is, or is an instance of."""
        if isinstance(node, ast.Name) and node.id == scope.receiver and scope.host is not None:
            return scope.host
        if isinstance(node, ast.Name):
            named = self.names.definition(node.id, scope)
            if named is not None and named.kind == "class":
                return named
        for origin in self.origins(node, scope):
            made = self._maker(origin.call, origin.scope) if origin.call is not None else self._annotated(origin)
            made = made or self.noted(origin)
            if made is not None and made.kind == "class":
                return made
        return None

    def _annotated(self, origin: Origin) -> Scope | None:
        """What stands as the annotation of a parameter whose callers are unknown: "Net", Net | None, Optional[Net]."""
        note = origin.node if origin.is_parameter else None
        if isinstance(note, ast.BinOp):
            note = note.left
        if isinstance(note, ast.Subscript):
            note = note.slice
        name = note.value if isinstance(note, ast.Constant) else dotted(note)
        return self.names.definition(name, origin.scope) if isinstance(name, str) and name.isidentifier() else None

    def noted(self, origin: Origin) -> Scope | None:
        """The class of this file that a parameter with neither annotation nor callers is called after."""
        if not origin.is_parameter or origin.node is not None or origin.store is None:
            return None
        used = origin.store.name in self.facts.calls or _has_no_default(origin)
        return self._classes.get(origin.store.name) if used else None

    @cached_property
    def _classes(self) -> dict[str, Scope]:
        """The classes of the file's top level, by the variables that are called after them: tracker, video_tracker."""
        found = {
            each.name: each
            for each in self.facts.scopes
            if each.kind == "class" and each.parent is self.facts.scopes[0]
        }
        snakes = {re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower(): each for name, each in found.items()}
        return {name: each for name, each in snakes.items() if each.name != name}

    def _maker(self, call: ast.Call, scope: Scope) -> Scope | None:
        """What CALL calls; None where that is asked already: in m = m.load() the maker is its own result."""
        if id(call) in self._asked:
            self._cuts += 1
            return None
        self._asked.add(id(call))
        found = self.definition(call.func, scope)
        self._asked.discard(id(call))
        return found

    def method(self, host: Scope, name: str) -> Scope | None:
        """The method NAME of the class HOST or of its bases in this file."""
        return next((base.inner[name] for base in self.lineage(host) if name in base.inner), None)

    def lineage(self, host: Scope) -> list[Scope]:
        """HOST and those of its bases that this file defines."""
        found = [host]
        for each in found:
            for base in each.node.bases if isinstance(each.node, ast.ClassDef) else ():
                scope = self.definition(base, each.parent or each)
                if scope is not None and scope.kind == "class" and scope not in found:
                    found.append(scope)
        return found

    def bases(self, host: Scope) -> set[str]:
        """The real names of all bases of HOST, through the classes of this file."""
        return {
            self.names.resolve(base, each.parent or each)
            for each in self.lineage(host)
            if isinstance(each.node, ast.ClassDef)
            for base in each.node.bases
        }

    def is_whole(self, host: Scope) -> bool:
        """Whether all methods of HOST are known: its own, those of classes of this file, and those of torch."""
        bases = [
            (base, each.parent or each)
            for each in self.lineage(host)
            if isinstance(each.node, ast.ClassDef)
            for base in each.node.bases
        ]
        own = {each.name for each in self.lineage(host)}
        names = (dotted(base) if dotted(base) in own else self.names.resolve(base, scope) for base, scope in bases)
        return all(name in own or name.partition(".")[0] in ("torch", "builtins", "abc", "typing") for name in names)

    @cached_property
    def _makes_callables(self) -> bool:
        """Whether this file makes objects whose own __call__ trains: of transforms and the like nobody asks."""
        classes = (each for each in self.facts.scopes if each.kind == "class" and each.name in self.facts.calls)
        calls = (each.inner["__call__"].calls for each in classes if "__call__" in each.inner)
        return any(call.tail in _TRAINING for each in calls for call in each)

    def _calls_of_objects(self) -> dict[int, tuple[Call, ...]]:
        """The calls of objects of own classes, by the method __call__ that each runs.

        Found once for the whole file; what asks meanwhile sees none, as answers that circles cut short cost too much.
        """
        if self._objects is None:
            self._objects, found = {}, dict[int, list[Call]]()
            for call in (call for calls in self.facts.calls.values() for call in calls):
                if isinstance(call.node.func, ast.Name | ast.Attribute):
                    made = self.definition(call.node.func, call.scope)
                    if made is not None and made.name == "__call__":
                        found.setdefault(id(made), []).append(call)
            self._objects = {key: tuple(calls) for key, calls in found.items()}
        return self._objects

    def sites(self, function: Scope) -> tuple[Call, ...]:
        """The calls of FUNCTION in this file; of a class's __init__, the places where it is made."""
        key = id(function)
        if key in self._sites:
            return self._sites[key]
        if key in self._draft_sites or key in self._finding:
            self._cuts += 1
            return self._draft_sites.get(key, ())
        before = self._cuts
        self._finding.add(key)
        found = self._callers(function)
        self._finding.discard(key)
        (self._sites if self._is_uncut(before) else self._draft_sites)[key] = found
        return found

    def _callers(self, function: Scope) -> tuple[Call, ...]:
        made = function.name == "__init__" and function.host is not None
        name = function.host.name if made and function.host is not None else function.name
        target = function.host if made else function
        if name == "__call__":
            return self._calls_of_objects().get(id(function), ()) if self._makes_callables else ()
        calls = self.facts.calls.get(name, ())
        return tuple(
            call
            for call in calls
            if self.definition(call.node.func, call.scope) is target or self._is_left_to(call, target)
        )

    def _is_left_to(self, call: Call, method: Scope | None) -> bool:
        """Whether CALL on self stands in a base of the class that METHOD is of: it runs METHOD there."""
        base, host = call.scope.host, method.host if method is not None else None
        if base is None or host is None or base is host or dotted(call.receiver) != call.scope.receiver:
            return False
        return base in self.lineage(host)


def is_property(node: ast.AST) -> bool:
    """Whether NODE is a function that is read as an attribute."""
    words = (dotted(each).rpartition(".")[2] for each in getattr(node, "decorator_list", ()))
    return any(word in ("property", "cached_property") for word in words)


def _has_no_default(origin: Origin) -> bool:
    """Whether a parameter must be given: levels=8 is no Levels."""
    node = origin.scope.node
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or origin.store is None:
        return False
    plain = [each.arg for each in (*node.args.posonlyargs, *node.args.args)]
    return origin.store.name in plain[: len(plain) - len(node.args.defaults)]
