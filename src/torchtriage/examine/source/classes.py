"""Classes that torch gives a meaning to: modules and autograd functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from msgspec import Struct

from torchtriage.examine.detector import view
from torchtriage.examine.source.facts import Call, Return, Scope, Store, dotted
from torchtriage.examine.source.returned import Gradients
from torchtriage.examine.source.script import Script

_WRITTEN_OUT = (ast.List, ast.ListComp, ast.Dict, ast.DictComp)


class ModuleClass(Struct, frozen=True):
    """A subclass of nn.Module, directly or through classes of the same file."""

    script: Script
    scope: Scope

    @property
    def methods(self) -> list[Scope]:
        return [scope for scope in self.script.facts.scopes if scope.host is self.scope]

    def calls(self, *tails: str) -> Iterator[Call]:
        """The calls in its methods whose last word is one of TAILS."""
        yield from (call for method in self.methods for call in method.calls if call.tail in tails)

    def contents(self, name: str) -> Iterator[tuple[ast.expr, Scope, Store | Call]]:
        """What self.NAME holds when it is a plain list, dict or tuple: each element, its scope, and where it is put in.

        Nothing, when any store makes it something else.
        """
        stores = self.scope.attributes.get(name, [])
        if any(not self._is_plain(_whole(store), store.scope) for store in stores if store.how == "assign"):
            return
        for store in stores:
            yield from ((*held, store) for held in self._elements(_whole(store), store.scope))
        for call in self.calls("append", "extend", "insert"):
            if dotted(call.receiver) == f"{call.scope.receiver}.{name}" and call.node.args:
                last = call.node.args[-1]
                inside = [*self._elements(last, call.scope)] if call.tail == "extend" else [(last, call.scope)]
                yield from ((*held, call) for held in inside)
        for store in self.scope.attributes.get(f"{name}[]", []):
            if store.value is not None and store.how == "assign":
                yield store.value, store.scope, store

    def _is_plain(self, node: ast.expr | None, scope: Scope, through: tuple[object, ...] = ()) -> bool:
        match node:
            case (
                ast.List()
                | ast.Tuple()
                | ast.Dict()
                | ast.ListComp()
                | ast.DictComp()
                | ast.Call(func=ast.Name(id="list" | "dict" | "tuple" | "OrderedDict" | "defaultdict"))
                | ast.Call(func=ast.Attribute(value=ast.Name(id="collections"), attr="OrderedDict" | "defaultdict"))
                | ast.BinOp(left=ast.List(), op=ast.Mult())  # [None] * n, to be filled in
            ):
                return True
            case ast.Call() if (helper := self._helper(node, scope)) is not None and helper not in through:
                ends = [each.node.value for each in helper.returns]
                return bool(ends) and all(self._is_plain(each, helper, (*through, helper)) for each in ends)
            case ast.Name(id=name) if name not in through:
                stores = [store for store in self.script.names.stores(name, scope) if store.how != "augment"]
                if stores and all(store.how == "parameter" and store.scope is scope for store in stores):
                    given = self._given(name, scope)
                    return bool(given) and all(self._is_plain(each, home, (*through, name)) for each, home in given)
                return bool(stores) and all(
                    self._is_plain(_whole(store), store.scope, (*through, name)) for store in stores
                )
        return False

    def _helper(self, call: ast.Call, scope: Scope) -> Scope | None:
        """The function of this file that CALL runs."""
        helper = self.script.trace.definition(call.func, scope)
        return helper if helper is not None and helper.kind == "function" else None

    def _given(self, name: str, scope: Scope) -> list[tuple[ast.expr, Scope]]:
        """What the constructor's parameter NAME is given on the spot: Net([nn.Linear(2, 2), nn.Linear(2, 2)])."""
        words = [each.arg for each in scope.parameters]
        sites = self.script.trace.sites(scope) if scope.name == "__init__" else ()
        found = [(site.argument(name, words.index(name) - 1), site.scope) for site in sites]
        plain: list[tuple[ast.expr, Scope]] = [(each, home) for each, home in found if isinstance(each, _WRITTEN_OUT)]
        return plain if len(plain) == len(found) else []

    def _elements(
        self, node: ast.expr | None, scope: Scope, through: tuple[object, ...] = ()
    ) -> Iterator[tuple[ast.expr, Scope]]:
        match node:
            case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Dict(values=parts):
                for part in parts:
                    yield from self._nested(part, scope, through)
            case ast.ListComp(elt=part) | ast.GeneratorExp(elt=part) | ast.DictComp(value=part):
                yield from self._nested(part, scope, through)
            case ast.Call():
                yield from self._called(node, scope, through)
            case ast.BinOp(left=left, right=right):
                yield from (*self._elements(left, scope, through), *self._elements(right, scope, through))
            case ast.Name(id=name) if name not in through:
                yield from self._local(name, scope, (*through, name))

    def _called(self, call: ast.Call, scope: Scope, through: tuple[object, ...]) -> Iterator[tuple[ast.expr, Scope]]:
        """What the result of CALL holds: of map, of list() and the like, of a function of this file."""
        match call:
            case ast.Call(func=ast.Name(id="map"), args=[ast.Lambda(body=part), *_]):
                yield part, scope
            case ast.Call(func=ast.Name(id="list" | "dict" | "tuple" | "OrderedDict"), args=given, keywords=named):
                yield from ((keyword.value, scope) for keyword in named)
                for argument in given:
                    yield from self._elements(argument, scope, through)
            case _:
                helper = self._helper(call, scope)
                for end in helper.returns if helper is not None and helper not in through else ():
                    yield from self._elements(end.node.value, helper or scope, (*through, helper))

    def _nested(self, part: ast.expr, scope: Scope, through: tuple[object, ...]) -> Iterator[tuple[ast.expr, Scope]]:
        """PART of a container, or what it holds itself: [(nn.Linear(2, 2), nn.ReLU()) for _ in range(3)]."""
        if isinstance(part, ast.List | ast.Tuple | ast.Dict):
            yield from self._elements(part, scope, through)
        else:
            yield part, scope

    def _local(self, name: str, scope: Scope, through: tuple[object, ...]) -> Iterator[tuple[ast.expr, Scope]]:
        stores = scope.stores.get(name, ())
        for store in stores:
            if store.how == "parameter":
                for given, home in self._given(name, scope):
                    yield from self._elements(given, home, through)
            elif not isinstance(store.value, ast.Name):
                yield from self._elements(_whole(store), scope, through)
        for store in scope.stores.get(f"{name}[]", ()) if stores else ():
            if store.value is not None and store.how == "assign":
                yield store.value, scope
        for call in scope.calls:
            if call.tail == "append" and dotted(call.receiver) == name:
                yield from ((each, scope) for each in call.node.args)


def _whole(store: Store) -> ast.expr | None:
    """What STORE gives its name: of a, b = x, y the part at its place, None where it is not seen."""
    match store:
        case Store(index=int() as place, value=ast.Tuple(elts=parts) | ast.List(elts=parts)):
            return parts[place] if place < len(parts) else None
    return store.value if store.index is None else None


class FunctionClass(Struct, frozen=True):
    """A subclass of torch.autograd.Function with its forward and backward, its own or those of bases in this file."""

    script: Script
    scope: Scope
    forward: Scope
    backward: Scope

    @property
    def setup(self) -> Scope | None:
        """The setup_context that goes with forward."""
        return self.script.trace.method(self.scope, "setup_context")

    @property
    def inputs(self) -> list[ast.arg]:
        """What forward takes, without ctx."""
        skipped = 0 if self.setup is not None else 1
        return list(self.forward.parameters[skipped:])

    @property
    def optional(self) -> int:
        """How many of the inputs have a default."""
        return len(self._arguments.defaults)

    @property
    def is_open(self) -> bool:
        """Whether the number of inputs is only known at the call: *args, **kwargs."""
        return bool(self._arguments.vararg or self._arguments.kwarg or self._arguments.kwonlyargs)

    @property
    def decorators(self) -> set[str]:
        """The real names of the decorators of forward and backward; "" for one that is not known."""
        return {
            self.script.names.resolve(each.func if isinstance(each, ast.Call) else each, self.scope)
            for method in (self.forward, self.backward)
            if isinstance(method.node, ast.FunctionDef)
            for each in method.node.decorator_list
        }

    def gradients(self) -> Iterator[tuple[Return, list[ast.expr]]]:
        """The returns of backward whose gradients can be counted, and the gradients."""
        yield from Gradients(self.script, self.backward).each()

    @property
    def _arguments(self) -> ast.arguments:
        node = self.forward.node
        return node.args if isinstance(node, ast.FunctionDef) else ast.arguments([], [], None, [], [], None, [])


@view(ModuleClass, of=Script)
def modules(script: Script) -> tuple[ModuleClass, ...]:
    return tuple(
        ModuleClass(script, scope)
        for scope in script.classes
        if any(script.roles.of_class(base) == "model" for base in script.trace.bases(scope))
        or "pytorch_lightning.LightningModule" in script.trace.bases(scope)
    )


@view(FunctionClass, of=Script)
def functions(script: Script) -> tuple[FunctionClass, ...]:
    found = []
    for scope in script.classes:
        own = {"forward", "backward"} & scope.inner.keys()
        if own and "torch.autograd.Function" in script.trace.bases(scope):
            forward, backward = (script.trace.method(scope, name) for name in ("forward", "backward"))
            if forward is not None and backward is not None:
                found.append(FunctionClass(script, scope, forward, backward))
    return tuple(found)
