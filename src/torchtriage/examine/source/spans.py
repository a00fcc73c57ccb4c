"""Pieces of code between two readings of the clock, and what of them runs on an accelerator."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from msgspec import Struct

from torchtriage.examine.detector import view
from torchtriage.examine.source.definitions import Origin
from torchtriage.examine.source.events import Event, Ring
from torchtriage.examine.source.facts import Block, Call, Return, Scope, Store, dotted
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
                    if all(inner is not self.closing.node for inner in ast.walk(each)):
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


class Devices:
    """What of a file is surely on an accelerator."""

    def __init__(self, script: Script) -> None:
        self.script = script

    def is_moved(self, node: ast.expr | None, scope: Scope, deep: int = 0) -> bool:
        """Whether NODE was moved to, or made on, an accelerator: by .cuda(), .to("cuda"), device="cuda"."""
        if node is None or deep > 6:
            return False
        if isinstance(node, ast.Call) and (self.is_move(node, scope) or self._is_handed_on(node, scope, deep)):
            return True
        if isinstance(node, ast.Tuple | ast.List):
            return any(self.is_moved(each, scope, deep + 1) for each in node.elts)
        if isinstance(node, ast.Subscript) and self.is_moved(node.value, scope, deep + 1):
            return True
        name = dotted(node)
        return bool(name) and (self._by_origin(node, scope, deep) or self._by_store(name, scope, deep))

    def is_accelerator(self, node: ast.expr | None, scope: Scope) -> bool:
        """Whether NODE names an accelerator: "cuda", torch.device("cuda:0"), either arm of a condition."""
        return any(self._names_one(origin) for origin in self.script.trace.origins(node, scope))

    def _names_one(self, origin: Origin) -> bool:
        if origin.is_parameter and origin.store is not None:
            default = _default(origin.store)
            return default is not None and self.is_accelerator(default, origin.scope)
        match origin.node:
            case ast.Attribute(attr=option):
                return option in self._options
            case ast.Call(args=[inner, *_]) | ast.Call(keywords=[ast.keyword(arg="type", value=inner), *_]):
                device = self.script.names.resolve(origin.node.func, origin.scope) == "torch.device"
                return device and self.is_accelerator(inner, origin.scope)
        return _is_kind(origin.node)

    @cached_property
    def _options(self) -> frozenset[str]:
        """The options and fields that name an accelerator unless someone says otherwise: --device, default="cuda"."""
        given = (
            str(call.node.args[0].value).lstrip("-").replace("-", "_")
            for call in self.script.calls("add_argument")
            if _is_kind(call.argument("default")) and call.node.args and isinstance(call.node.args[0], ast.Constant)
        )
        fields = (
            name
            for scope in self.script.classes
            for name, stores in scope.stores.items()
            if "device" in name and any(_is_kind(store.value) for store in stores)
        )
        return frozenset((*given, *fields))

    def is_move(self, call: ast.Call, scope: Scope) -> bool:
        """Whether CALL itself moves something to an accelerator, or makes it there."""
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        if "device" in given and self.is_accelerator(given["device"], scope):
            return True
        match call.func:
            case ast.Attribute(attr="cuda"):
                return True
            case ast.Attribute(attr="to"):
                return bool(call.args) and self.is_accelerator(call.args[0], scope)
        return False

    def _is_handed_on(self, call: ast.Call, scope: Scope, deep: int) -> bool:
        """model.eval() hands on the model, torch.compile(model) its argument."""
        passed = [*call.args[:1]]
        if isinstance(call.func, ast.Name):
            passed.append(call.func)
        if isinstance(call.func, ast.Attribute) and isinstance(
            call.func.value, ast.Name | ast.Call | ast.Attribute | ast.Subscript
        ):
            passed.append(call.func.value)
        return any(self.is_moved(each, scope, deep + 1) for each in passed)

    @cached_property
    def _moved(self) -> set[int]:
        """The places where what is moved somewhere in the file was made, or came in."""
        return {
            key
            for call in self.script.calls("cuda", "to")
            if call.receiver is not None and self.is_move(call.node, call.scope)
            for origin in self.script.trace.origins(call.receiver, call.scope)
            if (key := _place(origin)) is not None
        }

    def _by_origin(self, node: ast.expr, scope: Scope, deep: int) -> bool:
        return any(
            _place(origin) in self._moved
            or (origin.call is not None and self.is_moved(origin.call, origin.scope, deep + 1))
            for origin in self.script.trace.origins(node, scope)
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
            place = words.index(store.name) - (store.scope.receiver in words[:1])
            sites = self.script.trace.sites(store.scope)
            return any(self.is_moved(site.argument(store.name, place), site.scope, deep + 1) for site in sites)
        value = store.value
        if isinstance(value, ast.Tuple) and store.index is not None and store.index < len(value.elts):
            value = value.elts[store.index]
        return store.how == "assign" and self.is_moved(value, store.scope, deep + 1)


def _is_kind(node: ast.expr | None) -> bool:
    """Whether NODE is the name of an accelerator."""
    match node:
        case ast.Constant(value=str(word)) | ast.JoinedStr(values=[ast.Constant(value=str(word)), *_]):
            return word.startswith(("cuda", "xpu", "mps"))
    return False


def _default(store: Store) -> ast.expr | None:
    """What a parameter is when no caller gives it."""
    arguments = getattr(store.scope.node, "args", None)
    if not isinstance(arguments, ast.arguments):
        return None
    words = [each.arg for each in (*arguments.posonlyargs, *arguments.args)]
    given = dict(zip(reversed(words), reversed(arguments.defaults), strict=False))
    given |= {a.arg: d for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d is not None}
    return given.get(store.name)


def _place(origin: Origin) -> int | None:
    """What tells the thing at ORIGIN from others: where it is made, or the store by which it comes in."""
    if isinstance(origin.node, ast.Call):
        return id(origin.node)
    return id(origin.store) if origin.store is not None and not isinstance(origin.node, ast.Constant) else None
