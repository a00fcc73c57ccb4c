"""Pieces of code between two readings of the clock, and what of them runs on an accelerator."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from msgspec import Struct

from torchtriage.examine.detector import view
from torchtriage.examine.source.events import Event, Ring
from torchtriage.examine.source.facts import Call, Return, Scope, Store, dotted
from torchtriage.examine.source.flow import Spot, reaches, reaching
from torchtriage.examine.source.script import Script

_CLOCKS = frozenset(
    {"time.time", "time.perf_counter", "time.monotonic", "time.time_ns", "time.perf_counter_ns"}
    | {"time.monotonic_ns", "timeit.default_timer"}
)
_TAILS = frozenset(name.rpartition(".")[2] for name in _CLOCKS)


class Span(Struct, frozen=True):
    """What runs between two readings of one clock in one function.

    opening, closing: the first reading and the second. events: what is evaluated between them, functions of the file
    written out.
    """

    script: Script
    scope: Scope
    opening: Call
    closing: Call
    events: tuple[Event, ...]

    def calls(self) -> Iterator[Call]:
        yield from (event.fact for event in self.events if isinstance(event.fact, Call))

    def iterables(self) -> Iterator[ast.expr]:
        """What the loops inside go through."""
        for event in self.events:
            if isinstance(event.fact, Store) and event.fact.how == "element" and event.fact.value is not None:
                yield event.fact.value

    def stores(self) -> Iterator[Store]:
        yield from (event.fact for event in self.events if isinstance(event.fact, Store))

    def decisions(self) -> Iterator[tuple[ast.expr, Scope]]:
        """What Python itself must know the value of inside: tests, values that are formatted, and what selects."""
        first, last = self.opening.node.lineno, self.closing.node.lineno
        for scope in {id(event.fact.scope): event.fact.scope for event in self.events}.values():
            for node in ast.walk(scope.node):
                inside = scope is not self.scope or first <= getattr(node, "lineno", 0) <= last
                for each in _decided(node) if inside else ():
                    if all(inner is not self.closing.node for inner in ast.walk(each)):
                        yield each, scope

    def products(self) -> Iterator[tuple[ast.BinOp, Scope]]:
        """The matrix products (a @ b) that are given a name inside."""
        for event in self.events:
            if isinstance(event.fact, Store) and isinstance(event.fact.value, ast.BinOp):
                product = event.fact.value
                if isinstance(product.op, ast.MatMult):
                    yield product, event.fact.scope


def _decided(node: ast.AST) -> list[ast.expr]:
    match node:
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test) | ast.Assert(test=test):
            return [test]
        case ast.FormattedValue(value=value) | ast.Subscript(slice=value, ctx=ast.Load()):
            return [value]
        case ast.comprehension(ifs=tests):
            return tests
    return []


@view(Span, of=Script)
def spans(script: Script) -> Iterator[Span]:
    scopes = {id(call.scope): call.scope for call in script.calls(*_clock_tails(script))}
    for scope in scopes.values():
        for node, spot in _differences(scope):
            found = _span(script, scope, node, spot)
            if found is not None:
                yield found
                yield from _used(found)


def _used(span: Span) -> Iterator[Span]:
    """The bodies of the with statements that a timer of this file, a @contextmanager, takes the time of."""
    marks = getattr(span.scope.node, "decorator_list", [])
    if not any(dotted(each).rpartition(".")[2] == "contextmanager" for each in marks):
        return
    script = span.script
    for site in script.trace.sites(span.scope):
        blocks = (each for action in site.scope.actions for each in action.path if each.owner is site.statement)
        block = next((each for each in blocks if each.kind == "with"), None)
        if block is not None:
            inside = script.written.events(Ring(block, site.scope))
            yield Span(script, span.scope, span.opening, span.closing, (*span.events, *inside))


def _clock_tails(script: Script) -> frozenset[str]:
    return _TAILS | {store.name for store in script.facts.aliases if store.imported in _CLOCKS}


def _differences(scope: Scope) -> Iterator[tuple[ast.BinOp, Spot]]:
    """The subtractions in the own body of SCOPE, each with the first action or return that it belongs to."""
    seen: set[int] = set()
    spots: list[Call | Store | Return] = sorted([*scope.actions, *scope.returns], key=lambda spot: spot.order)
    for spot in spots:
        for expression in _expressions(spot):
            for node in ast.walk(expression):
                if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and id(node) not in seen:
                    seen.add(id(node))
                    yield node, spot


def _expressions(spot: Call | Store | Return) -> list[ast.expr]:
    match spot:
        case Call():
            return spot.arguments
        case Store(how="assign" | "augment", value=ast.expr() as value):
            return [value]
        case Return(node=ast.Return(value=ast.expr() as value)):
            return [value]
    return []


def _span(script: Script, scope: Scope, node: ast.BinOp, spot: Spot) -> Span | None:
    opening, closing = _reading(script, scope, node.right, spot), _reading(script, scope, node.left, spot)
    if opening is None or closing is None or not reaches(opening, closing):
        return None
    whole = script.written.events(Ring(scope.body, scope))
    place = {id(event.fact): event.order for event in whole}
    first, last = place[id(opening)], place[id(closing)]
    return Span(
        script, scope, opening, closing, tuple(event for event in whole[first:last] if reaches(whole[first], event))
    )


def _reading(script: Script, scope: Scope, node: ast.expr, spot: Spot) -> Call | None:
    """The one clock call whose result NODE is; None when it may be several, as in a loop that times itself."""
    if isinstance(node, ast.Name):
        stores = reaching(scope.stores.get(node.id, ()), spot)
        return _reading(script, scope, stores[0].value, stores[0]) if len(stores) == 1 and stores[0].value else None
    for call in scope.calls:
        if call.node is node:
            return call if script.name(call) in _CLOCKS else None
    return None


class Devices:
    """What of a file is surely on an accelerator."""

    def __init__(self, script: Script) -> None:
        self.script = script

    def is_moved(self, node: ast.expr | None, scope: Scope, deep: int = 0) -> bool:
        """Whether NODE was moved to, or made on, an accelerator: by .cuda(), .to("cuda"), device="cuda"."""
        if node is None or deep > 6:
            return False
        if isinstance(node, ast.Call):
            return self._is_move(node, scope) or any(
                self.is_moved(each, scope, deep + 1) for each in self._passed(node)
            )
        if isinstance(node, ast.Tuple):
            return any(self.is_moved(each, scope, deep + 1) for each in node.elts)
        name = dotted(node)
        return bool(name) and (self._by_statement(name, scope) or self._by_store(name, scope, deep))

    def is_accelerator(self, node: ast.expr | None, scope: Scope) -> bool:
        """Whether NODE names an accelerator: "cuda", torch.device("cuda:0"), either arm of a condition."""
        for origin in self.script.trace.origins(node, scope):
            match origin.node:
                case ast.Constant(value=str(word)) | ast.JoinedStr(values=[ast.Constant(value=str(word)), *_]):
                    if word.startswith(("cuda", "xpu", "mps")):
                        return True
                case ast.Call(args=[inner, *_]) as call:
                    device = self.script.names.resolve(call.func, origin.scope) == "torch.device"
                    if device and self.is_accelerator(inner, origin.scope):
                        return True
        return False

    def _is_move(self, call: ast.Call, scope: Scope) -> bool:
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        if self.is_accelerator(given.get("device"), scope):
            return True
        match call.func:
            case ast.Attribute(attr="cuda"):
                return True
            case ast.Attribute(attr="to"):
                return bool(call.args) and self.is_accelerator(call.args[0], scope)
        return False

    def _passed(self, call: ast.Call) -> Iterator[ast.expr]:
        """What a call hands on: model.eval() the model, torch.compile(model) its argument."""
        if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name | ast.Call | ast.Attribute):
            yield call.func.value
        yield from call.args[:1]

    def _by_statement(self, name: str, scope: Scope) -> bool:
        return any(
            dotted(call.receiver) == name and call.scope is scope and self._is_move(call.node, scope)
            for call in self.script.calls("cuda", "to")
        )

    def _by_store(self, name: str, scope: Scope, deep: int) -> bool:
        root, dot, rest = name.partition(".")
        if dot:
            host = scope.host if root == scope.receiver else None
            stores = host.attributes.get(rest, []) if host is not None else []
        else:
            stores = self.script.names.stores(name, scope)
        return any(self._stored(store, deep) for store in stores)

    def _stored(self, store: Store, deep: int) -> bool:
        if store.how == "parameter":
            words = [each.arg for each in store.scope.parameters]
            place = words.index(store.name)
            sites = self.script.trace.sites(store.scope)
            return any(self.is_moved(site.argument(store.name, place), site.scope, deep + 1) for site in sites)
        value = store.value
        if isinstance(value, ast.Tuple) and store.index is not None and store.index < len(value.elts):
            value = value.elts[store.index]
        return store.how == "assign" and self.is_moved(value, store.scope, deep + 1)
