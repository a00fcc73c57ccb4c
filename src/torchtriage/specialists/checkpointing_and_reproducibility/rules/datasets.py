"""What the source alone shows about datasets that are read by several worker processes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.definitions import Origin
from torchtriage.examine.source.events import Event, Ring
from torchtriage.examine.source.facts import Call, Scope, Store, dotted
from torchtriage.examine.source.loaded import LoadedDataset, Read
from torchtriage.examine.source.script import Script

_GENERATORS = frozenset(
    {"numpy.random.default_rng", "numpy.random.RandomState", "numpy.random.Generator", "random.Random"}
    | {"torch.Generator"}
)
_COMPOSED = ("Compose", "RandomApply", "RandomChoice", "RandomOrder", "OneOf", "Sequential")
_SEEDS = ("seed", "manual_seed", "set_state", "setstate", "jumped", "advance")


@detector("source/dataset-owned-rng")
def dataset_owned_rng(dataset: LoadedDataset) -> Iterator[Sighting]:
    """A random generator that belongs to the dataset draws the same numbers in every worker."""
    script = dataset.script
    if not any(script.named(*_GENERATORS)):
        return
    method = dataset.method("__getitem__", "__getitems__", "__iter__")
    read = next((each for each in dataset.reads if each.workers != 1 or not each.lasts), None)
    if method is None or read is None or _is_copied_by_hand(dataset):
        return
    for made, name, owner in _drawn_from(script, method):
        if not _is_seeded_later(script, owner or dataset.scope, name):
            yield script.seen(made, _copies(name, read))
            return


def _copies(name: str, read: Read) -> str:
    line, what = read.loader.node.lineno, name or "this generator"
    if read.workers == 1:
        return f"{what} goes into the worker of line {line} as a copy: every epoch draws the numbers of the first"
    count = f"each of the {read.workers}" if read.workers else "each of the"
    again = "" if read.lasts else ", and again in every epoch"
    return f"{what} goes into {count} workers of line {line} as a copy: all draw the same numbers{again}"


def _drawn_from(
    script: Script, method: Scope, owner: Scope | None = None, deep: int = 0
) -> Iterator[tuple[ast.Call, str, Scope | None]]:
    """The generators made elsewhere that METHOD, and what it calls in this file, draws from; their names and owners."""
    events = script.written.events(Ring(method.body, method))
    yield from _drawn_by_parts(script, events, deep)
    inside = {id(method), *(id(event.fact.scope) for event in events)}
    for call in (event.call for event in events if event.call is not None):
        for node in (call.receiver, *call.arguments) if script.name(call) not in _GENERATORS else ():
            if not isinstance(node, ast.Attribute | ast.Name):
                continue
            for origin in script.trace.origins(node, call.scope):
                made = _generator(script, origin)
                if made is not None and origin.store is not None and id(origin.scope) not in inside:
                    called = call.scope.host if call.scope.name == "__call__" else None  # a part of the dataset
                    yield made, dotted(node), called or owner


def _drawn_by_parts(
    script: Script, events: tuple[Event, ...], deep: int
) -> Iterator[tuple[ast.Call, str, Scope | None]]:
    """What the objects draw from that the dataset holds and calls: self.transform(x)."""
    for call in (event.call for event in events if event.call is not None):
        part = call.node.func
        if deep > 2 or not dotted(part) or script.name(call):
            continue
        for own in _called(script, part, call.scope):
            called = script.trace.method(own, "__call__")
            if called is not None:
                yield from _drawn_from(script, called, own, deep + 1)


def _called(script: Script, node: ast.expr, scope: Scope, deep: int = 0) -> Iterator[Scope]:
    """The classes of this file whose instances NODE may be, also as parts of a torchvision Compose."""
    for origin in script.trace.origins(node, scope):
        if origin.call is None or origin.node is None:
            continue
        own = script.trace.definition(origin.call.func, origin.scope)
        if own is not None and own.kind == "class":
            yield own
        elif deep < 2 and dotted(origin.call.func).rpartition(".")[2] in _COMPOSED:
            for given in origin.call.args[:1]:
                lists = [each.node for each in script.trace.origins(given, origin.scope)]
                parts = (part for each in lists if isinstance(each, ast.List | ast.Tuple) for part in each.elts)
                yield from (own for part in parts for own in _called(script, part, origin.scope, deep + 1))


def _generator(script: Script, origin: Origin) -> ast.Call | None:
    """The constructor of the generator that ORIGIN is: also in torch.Generator().manual_seed(0)."""
    call = origin.call
    if call is not None and script.names.resolve(call.func, origin.scope) in _GENERATORS:
        return call
    match call:
        case ast.Call(func=ast.Attribute(value=ast.Call() as inner, attr="manual_seed")):
            return inner if script.names.resolve(inner.func, origin.scope) in _GENERATORS else None
    return None


def _is_copied_by_hand(dataset: LoadedDataset) -> bool:
    return dataset.method("__getstate__", "__setstate__", "__reduce__") is not None


def _is_seeded_later(script: Script, host: Scope, name: str) -> bool:
    """Whether something but __init__ sets the generator or its seed: per epoch, per worker or per sample."""
    ending, family = f".{name.rpartition('.')[2]}", script.trace.lineage(host)
    for scope in script.facts.scopes:
        for store in (store for stores in scope.stores.values() for store in stores):
            if (store.name.endswith(ending) or f"{ending}." in store.name) and _is_later(store, store.name, family):
                return True
    return any(
        f".{dotted(call.receiver)}".endswith(ending) and _is_later(call, dotted(call.receiver), family)
        for call in script.calls(*_SEEDS)
    )


def _is_later(at: Store | Call, name: str, family: list[Scope]) -> bool:
    """Whether it is done outside of __init__, and not by another class to itself."""
    own = at.scope.host is not None and name.startswith(f"{at.scope.receiver}.")
    return at.scope.host in family and at.scope.name != "__init__" if own else "." in name
