"""Pieces of code between two readings of the clock, and what of them runs on an accelerator."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from msgspec import Struct

from torchtriage.examine.detector import view
from torchtriage.examine.source.events import Event, Ring
from torchtriage.examine.source.facts import Block, Call, Return, Scope, Store, dotted
from torchtriage.examine.source.flow import Spot, reaches, reaching
from torchtriage.examine.source.nodes import nodes_in
from torchtriage.examine.source.script import Script

_CLOCKS = frozenset(
    {"time.time", "time.perf_counter", "time.monotonic", "time.time_ns", "time.perf_counter_ns"}
    | {"time.monotonic_ns", "timeit.default_timer"}
)
_TAILS = frozenset(name.rpartition(".")[2] for name in _CLOCKS)


class Span(Struct, frozen=True):
    """What runs between two readings of one clock in one function.

    opening, closing: the first reading and the second. events: what is evaluated between them, functions of the file
    written out. frames: the scopes of which only some lines belong to it: the first line and the last.
    """

    script: Script
    scope: Scope
    opening: Call
    closing: Call
    events: tuple[Event, ...]
    frames: tuple[tuple[Scope, int, int], ...]

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
        lines = {id(scope): (first, last) for scope, first, last in self.frames}
        for scope in {id(event.fact.scope): event.fact.scope for event in self.events}.values():
            first, last = lines.get(id(scope), (0, 10**9))
            for node in ast.walk(scope.node):
                inside = first <= getattr(node, "lineno", 0) <= last or (not first and not hasattr(node, "lineno"))
                for each in _decided(node) if inside else ():
                    if id(self.closing.node) not in nodes_in(each):
                        yield each, scope

    def products(self) -> Iterator[tuple[ast.BinOp, Scope]]:
        """The matrix products (a @ b) that are given a name inside."""
        for event in self.events:
            if isinstance(event.fact, Store) and isinstance(event.fact.value, ast.BinOp):
                for product in ast.walk(event.fact.value):
                    if isinstance(product, ast.BinOp) and isinstance(product.op, ast.MatMult):
                        yield product, event.fact.scope

    def targets(self, call: Call) -> list[Scope]:
        """The functions of this file that a CALL runs by a name that only holds them: fn() in `for fn in (old, new)`.

        None of them when one is unknown.
        """
        called, scope = call.node.func, call.scope
        if not isinstance(called, ast.Name | ast.Subscript | ast.Attribute):
            return []
        found = []
        for origin in self.script.trace.origins(called, scope):
            store = origin.store
            if isinstance(origin.node, ast.Lambda):
                found += [each for each in self.script.facts.scopes if each.node is origin.node]
            elif store is not None and store.how == "define":
                found += [store.scope.inner[store.name]] if store.name in store.scope.inner else []
            elif origin.is_parameter and store is not None and (decorated := self._decorated(store.scope)):
                found += decorated
            else:
                return []
        return [each for each in found if each.kind in ("function", "lambda")]

    def _decorated(self, decorator: Scope) -> list[Scope]:
        """The functions of this file that stand under @DECORATOR."""
        if decorator.kind != "function" or not decorator.inner:
            return []
        return [
            scope for scope in self.script.facts.scopes if isinstance(scope.node, ast.FunctionDef)
            and any(dotted(each) == decorator.name for each in scope.node.decorator_list)
        ]  # fmt: skip


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
    yield from _timers(script)


def _timers(script: Script) -> Iterator[Span]:
    """Classes that keep the first reading: timer.start() … timer.stop(), and `with Timer():`."""
    for host in script.classes:
        first = {
            name: store
            for name, stores in host.attributes.items()
            for store in stores
            if (call := _made_by(store)) is not None and script.name(call) in _CLOCKS
        }
        for method in host.inner.values() if first else ():
            for node, spot in _differences(method):
                name = dotted(node.right).partition(".")[2]
                closing = _reading(script, method, node.left, spot)
                if name in first and closing is not None and first[name].scope is not method:
                    yield from _timed(script, host, first[name], closing)


def _made_by(store: Store) -> Call | None:
    calls = (each for each in store.scope.calls if each.node is store.value)
    return next(calls, None) if store.how == "assign" else None


def _timed(script: Script, host: Scope, first: Store, closing: Call) -> Iterator[Span]:
    opening = _made_by(first)
    if opening is None:
        return
    if first.scope.name == "__enter__":
        before = script.written.events(Ring(closing.scope.body, closing.scope))
        ahead = tuple(event for event in before if event.fact.order < closing.order)
        for block, scope in _withs(script, host):
            inside = script.written.events(Ring(block, scope))
            frames = (_frame(block, scope), (closing.scope, 1, 0))
            yield Span(script, scope, opening, closing, (*inside, *ahead), frames)
    for site in script.trace.sites(first.scope):
        whole = script.written.events(Ring(site.scope.body, site.scope))
        start = next((number for number, event in enumerate(whole) if event.fact is site), len(whole))
        end = next((number for number, event in enumerate(whole) if event.fact is closing and number > start), 0)
        if end:
            last = next(event.fact for event in whole[end:] if event.fact.scope is site.scope)
            frame = (site.scope, site.node.lineno, getattr(last.node, "lineno", 0))
            events = tuple(event for event in whole[start + 1 : end] if reaches(whole[start], event))
            yield Span(script, site.scope, opening, closing, events, (frame, (closing.scope, 1, 0)))


def _withs(script: Script, host: Scope) -> Iterator[tuple[Block, Scope]]:
    """The blocks under a with statement that opens an object of the class HOST."""
    for scope in script.facts.scopes:
        blocks = {id(block): block for action in scope.actions for block in action.path if block.kind == "with"}
        for block in blocks.values():
            items = getattr(block.owner, "items", [])
            if any(script.trace.instance(item.context_expr, scope) is host for item in items):
                yield block, scope


def _frame(block: Block, scope: Scope) -> tuple[Scope, int, int]:
    body = getattr(block.owner, "body", [])
    return scope, body[0].lineno, body[-1].end_lineno


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
            frames = (*span.frames, _frame(block, site.scope))
            yield Span(script, span.scope, span.opening, span.closing, (*span.events, *inside), frames)


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
    inside = tuple(event for event in whole[first:last] if reaches(whole[first], event))
    return Span(script, scope, opening, closing, inside, ((scope, opening.node.lineno, closing.node.lineno),))


def _reading(script: Script, scope: Scope, node: ast.expr, spot: Spot) -> Call | None:
    """The one clock call whose result NODE is; None when it may be several, as in a loop that times itself."""
    if isinstance(node, ast.Name):
        stores = reaching(scope.stores.get(node.id, ()), spot)
        return _reading(script, scope, stores[0].value, stores[0]) if len(stores) == 1 and stores[0].value else None
    for call in scope.calls:
        if call.node is node:
            return call if script.name(call) in _CLOCKS else None
    return None
