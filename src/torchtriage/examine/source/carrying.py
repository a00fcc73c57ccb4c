"""Which values of a training step hold the graph that made them, and what the step propagates later."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Literal, TypeAlias

from msgspec import Struct

from torchtriage.examine.source.facts import Block, Call, Return, Scope, Store, dotted
from torchtriage.examine.source.flow import reaching
from torchtriage.examine.source.names import table
from torchtriage.examine.source.outliving import Outliving
from torchtriage.examine.source.overridden import is_hollow, overriding
from torchtriage.examine.source.steps import TrainingStep

What = Literal["loss", "output"]
_DEEP = 6


class End(Struct, frozen=True):
    """Where a function of the file returns what its caller then uses."""

    scope: Scope
    path: tuple[Block, ...]
    order: int


Use: TypeAlias = Call | Store | End


class Carrying(Outliving):
    """What of one step holds a graph, and what the step propagates later."""

    def __init__(self, step: TrainingStep) -> None:
        super().__init__(step)
        self.lore: dict[str, list[str]] = table()["graph"]
        self.stored: dict[int, What | None] = {}
        self.roots: set[int] = set()
        self.terms: set[int] = set()
        self._within: set[int] = set()
        for each in step.backwards:
            self.root(each.root, each.call)

    def root(self, node: ast.expr | None, use: Use) -> None:
        """Notes the stores that gave NODE, and the terms of a sum behind it: those of a dict, a list, a helper."""
        if node is None or id(node) in self.terms:
            return
        self.terms.add(id(node))
        if isinstance(node, ast.Name):
            for store in reaching(self._stores(node.id, use.scope), use):
                if id(store) not in self.roots:
                    self.roots.add(id(store))
                    whole = store.index is None and store.how in ("assign", "augment")
                    self.root(store.value if whole else None, store)
            return
        for term in _terms(node):
            self.root(term, use)

    def _stores(self, name: str, scope: Scope) -> list[Store]:
        return [store for store in self.script.names.stores(name, scope) if store.scope is scope]

    @cached_property
    def _needed(self) -> set[tuple[str, int]]:
        """The names whose values are themselves propagated somewhere in this file, each with what binds it."""
        calls = (*self.script.calls("backward"), *self.script.named("torch.autograd.grad"))
        found = {self._key(name, call.scope) for call in calls for name in _names(call.node)}
        stores = [(self._key(store.name, store.scope), store) for scope in self.script.facts.scopes
                  for each in scope.stores.values() for store in each]  # fmt: skip
        grown = -1
        while grown != len(found):
            grown = len(found)
            for key, store in stores:
                if key in found:
                    found.update(
                        self._key(name, scope) for value, scope in self._behind(store) for name in _names(value)
                    )
        return found

    def _behind(self, store: Store) -> Iterator[tuple[ast.expr, Scope]]:
        """Where the value of STORE comes from: what it is given, what callers give it, what a helper returns."""
        if store.how == "parameter":
            words = [each.arg for each in store.scope.parameters]
            place = words.index(store.name) - (store.scope.receiver in words[:1])
            for site in self.script.trace.sites(store.scope):
                given = site.argument(store.name, place)
                if given is not None:
                    yield given, site.scope
        if store.value is None or store.how not in ("assign", "element"):
            return
        yield store.value, store.scope
        for each in ast.walk(store.value):
            helper = self.script.trace.definition(each.func, store.scope) if isinstance(each, ast.Call) else None
            for end in helper.returns if helper is not None else ():
                if end.node.value is not None:
                    yield end.node.value, helper or store.scope

    def _key(self, name: str, scope: Scope) -> tuple[str, int]:
        root, dot, _ = name.partition(".")
        if dot and root == scope.receiver:
            return name, id(self.script.trace.lineage(scope.host)[-1]) if scope.host is not None else 0
        return name, id(self.script.names.home(root, scope))

    def is_needed(self, name: str, scope: Scope) -> bool:
        """Whether what NAME holds is itself propagated somewhere."""
        return self._key(name, scope) in self._needed

    def carries(self, node: ast.expr, use: Use) -> What | None:
        """What NODE holds where it is USEd; None when it holds no graph, or none that can be seen."""
        if isinstance(node, ast.Call):
            return "loss" if id(node) in self.terms else self._called(node, use)
        match node:
            case ast.Name(id=name):
                return self._named(name, use)
            case ast.Subscript(value=whole, slice=ast.Constant(value=key)) if displays := self._displays(whole, use, 0):
                return self._entry(displays, key)
            case ast.UnaryOp(op=ast.USub(), operand=value) | ast.Subscript(value=value) | ast.Starred(value=value):
                return self.carries(value, use)
            case ast.Attribute(value=value, attr=attr) if attr in self.lore["attributes"]:
                return self.carries(value, use)
        return self._any(_terms(node), use)

    def _displays(self, node: ast.expr | None, use: Use, deep: int) -> list[tuple[ast.Dict, Use]]:
        """The dicts, written out, that NODE may be; none where it may be something else."""
        if isinstance(node, ast.Dict):
            return [(node, use)]
        ways: list[tuple[ast.expr | None, Use]] = []
        if isinstance(node, ast.Name):
            stores = reaching(self._stores(node.id, use.scope), use)
            ways = [(store.value if store.how == "assign" and store.index is None else None, store) for store in stores]
        elif isinstance(node, ast.Call) and (helper := self._helper(node, use)) is not None:
            ways = [(each.node.value, End(helper, each.path, each.order)) for each in helper.returns]
        found = [self._displays(value, at, deep + 1) for value, at in ways if deep < _DEEP]
        return [each for some in found for each in some] if all(found) else []

    def _entry(self, displays: list[tuple[ast.Dict, Use]], key: object) -> What | None:
        """What the dicts hold under KEY: a graph only when all do."""
        found: list[What | None] = []
        for display, at in displays:
            off = isinstance(at, End) and self.is_off(at.path, at.scope)
            pairs = zip(display.keys, display.values, strict=True)
            value = next((v for k, v in pairs if isinstance(k, ast.Constant) and k.value == key), None)
            found.append(None if value is None or off else self.carries(value, at))
        return found[0] if None not in found else None

    def _named(self, name: str, use: Use) -> What | None:
        """A graph only when every store that may have given the name its value gave it one."""
        found: What | None = None
        for store in reaching(self._stores(name, use.scope), use):
            if store.order < use.order:
                what = self._stored(store)
                if what is None:
                    return None
                found = found or what
        return found

    def _stored(self, store: Store) -> What | None:
        """Remembered: a name that is given itself again and again would double the work at every store."""
        if id(store) not in self.stored:
            self.stored[id(store)] = None if self.is_off(store.path, store.scope) else self._made(store)
        return self.stored[id(store)]

    def _made(self, store: Store) -> What | None:
        if id(store) in self.roots:
            return "loss"
        if store.how == "element" and store.index in (None, 1) and (whole := _gone_through(store)) is not None:
            return self.carries(whole, store)
        given = store.value if store.how in ("assign", "augment") else None
        if isinstance(given, ast.Call) and (helper := self._helper(given, store)) is not None:
            return self._returned(helper, store.index)
        if isinstance(given, ast.Call) and store.index:  # a model's second result may be a number: its accuracy
            return None
        return self.carries(given, store) if given is not None else None

    def _helper(self, call: ast.Call, use: Use) -> Scope | None:
        """The function of this file that CALL runs, unless something wraps it."""
        found = self.script.trace.definition(call.func, use.scope)
        if found is not None and found.host is not None and (others := [*overriding(self.script.trace, found)]):
            found = others[0] if len(others) == 1 and is_hollow(found) else None
        node = found.node if found is not None else None
        decorators = {dotted(each) for each in node.decorator_list} if isinstance(node, ast.FunctionDef) else {None}
        return found if decorators <= {"staticmethod", "classmethod"} else None

    def _returned(self, helper: Scope, index: int | None = None) -> What | None:
        """What HELPER returns (or the part at INDEX of it): a graph only when every return gives one."""
        if id(helper) in self._within:
            return None
        self._within.add(id(helper))
        found: list[What | None] = [self._end(each, helper, index) for each in helper.returns]
        self._within.discard(id(helper))
        return found[0] if found and None not in found else None

    def _end(self, end: Return, helper: Scope, index: int | None) -> What | None:
        value = end.node.value
        if index is not None:
            value = value.elts[index] if isinstance(value, ast.Tuple) and index < len(value.elts) else None
        off = self.is_off(end.path, helper)
        return self.carries(value, End(helper, end.path, end.order)) if value is not None and not off else None

    def _any(self, nodes: Iterable[ast.expr | None], use: Use) -> What | None:
        for node in nodes:
            what = self.carries(node, use) if node is not None else None
            if what is not None:
                return what
        return None

    def _called(self, node: ast.Call, use: Use) -> What | None:
        tail = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        name = self.script.names.resolve(node.func, use.scope)
        if not name and tail in self.lore["methods"] and isinstance(node.func, ast.Attribute):
            return self.carries(node.func.value, use)
        if name.startswith("torch.") and name.rpartition(".")[2] in (*self.lore["methods"], *self.lore["losses"]):
            return self._any(node.args, use)
        if self.script.roles.plays(node.func, use.scope, "criterion"):
            return self._any(node.args, use)
        if name == "builtins.dict" or self._is_record(node, use):
            return self._any((*node.args, *(each.value for each in node.keywords)), use)
        if (helper := self._helper(node, use)) is not None:
            return self._returned(helper)
        is_model = not tail or dotted(node.func).startswith(f"{use.scope.receiver}.")
        return "output" if is_model and self.script.roles.plays(node.func, use.scope, "model") else None

    def _is_record(self, node: ast.Call, use: Use) -> bool:
        """Whether NODE makes an object of a class of this file that only holds what it is given."""
        made = self.script.trace.definition(node.func, use.scope)
        if made is None or not isinstance(made.node, ast.ClassDef) or self.script.trace.method(made, "__init__"):
            return False
        kinds = {dotted(each.func if isinstance(each, ast.Call) else each).rpartition(".")[2]
                 for each in (*made.node.decorator_list, *made.node.bases)}  # fmt: skip
        return bool(kinds & {"dataclass", "NamedTuple", "define", "Struct"})

    def is_off(self, path: tuple[Block, ...], scope: Scope) -> bool:
        """Whether PATH lies under no_grad or inference_mode."""
        return any(
            self.script.names.resolve(call.func, scope) in self.lore["without"]
            for block in path
            if isinstance(block.owner, ast.With) and block.kind == "with"
            for item in block.owner.items
            if isinstance(call := item.context_expr, ast.Call)
        )


def _terms(node: ast.expr) -> Iterator[ast.expr]:
    """What a sum is made of: both sides, the values of sum(parts.values()), what is stacked and then averaged."""
    match node:
        case ast.BinOp(left=left, right=right):
            yield from (left, right)
        case ast.Dict(values=parts) | ast.List(elts=parts) | ast.Tuple(elts=parts):
            yield from parts
        case ast.GeneratorExp(generators=rows) | ast.ListComp(generators=rows):
            yield from (each.iter for each in rows)
        case ast.Call(func=ast.Attribute(value=whole, attr="values" | "items"), args=[]):
            yield whole
        case ast.Call(func=ast.Attribute(value=whole, attr="sum" | "mean" | "backward"), args=[]):
            yield whole
        case ast.Call(func=ast.Name(id="sum"), args=[whole, *_]):
            yield whole
        case ast.Call(func=ast.Attribute(value=ast.Name(id="torch"), attr="sum" | "mean" | "stack"), args=[whole, *_]):
            yield whole


def _gone_through(store: Store) -> ast.expr | None:
    """The dict or list whose values a loop goes through: for name, value in terms.items()."""
    match store.value:
        case ast.Call(func=ast.Attribute(value=whole, attr="items"), args=[]) if store.index == 1:
            return whole
        case ast.Call(func=ast.Attribute(value=whole, attr="values"), args=[]) if store.index is None:
            return whole
        case ast.Name() as whole if store.index is None:
            return whole
    return None


def _names(node: ast.AST) -> Iterator[str]:
    for each in ast.walk(node):
        if isinstance(each, ast.Name | ast.Attribute) and (name := dotted(each)):
            yield name
