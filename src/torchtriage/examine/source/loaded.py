"""Dataset classes of the file, and the loaders that read them in worker processes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import islice

from msgspec import Struct

from torchtriage.examine.detector import view
from torchtriage.examine.source.facts import Call, Scope, dotted
from torchtriage.examine.source.script import Script

_ITERABLE = ("torch.utils.data.IterableDataset", "torch.utils.data.dataset.IterableDataset")
_DATASETS = (*_ITERABLE, "torch.utils.data.Dataset", "torch.utils.data.dataset.Dataset")
_LOADER = "torch.utils.data.DataLoader"
_DEEP, _MANY = 6, 60


class Read(Struct, frozen=True):
    """A loader that reads a dataset in worker processes. workers: how many; None when this file does not say."""

    loader: Call
    workers: int | None

    @property
    def lasts(self) -> bool:
        """Whether the workers may live for several epochs."""
        given = self.loader.argument("persistent_workers", 13)
        return given is not None and not (isinstance(given, ast.Constant) and given.value is False)


class LoadedDataset(Struct, frozen=True):
    """A dataset class and the loaders of this file that read it in workers which nothing seeds or splits anew."""

    script: Script
    scope: Scope
    is_iterable: bool
    reads: tuple[Read, ...]

    def method(self, *names: str) -> Scope | None:
        """The first of the methods with these NAMES, its own or of a base in this file."""
        found = (self.script.trace.method(self.scope, name) for name in names)
        return next((each for each in found if each is not None), None)


@view(LoadedDataset, of=Script)
def loaded(script: Script) -> Iterator[LoadedDataset]:
    loaders = [*script.named(_LOADER), *_made_by_partials(script)]
    if not loaders or any(script.calls("get_worker_info")) or "get_worker_info" in script.facts.stars:
        return
    for scope in script.classes:
        bases = script.trace.bases(scope)
        if any(base in _DATASETS or base.startswith("torchvision.datasets.") for base in bases):
            reads = tuple(_reads(script, scope, loaders))
            if reads:
                yield LoadedDataset(script, scope, any(base in _ITERABLE for base in bases), reads)


def _made_by_partials(script: Script) -> Iterator[Call]:
    """The calls of what functools.partial(DataLoader, …) gave a name, with all arguments together."""
    for partial in script.named("functools.partial"):
        if not partial.node.args or script.names.resolve(partial.node.args[0], partial.scope) != _LOADER:
            continue
        for name, stores in partial.scope.stores.items():
            for call in script.calls(name) if any(store.value is partial.node for store in stores) else ():
                words = {each.arg: each for each in (*partial.node.keywords, *call.node.keywords)}
                given = [*partial.node.args[1:], *call.node.args]
                whole = ast.Call(partial.node.args[0], given, list(words.values()))
                node = ast.copy_location(whole, call.node)
                yield Call(node, call.tail, call.scope, call.block, call.order, call.statement)


def _reads(script: Script, dataset: Scope, loaders: list[Call]) -> Iterator[Read]:
    for call in loaders:
        count = workers(script, call)
        if count == 0 or _is_told(script, call):
            continue
        if dataset in _sources(script, call.argument("dataset", 0), call.scope):
            yield Read(call, count)


def workers(script: Script, call: Call) -> int | None:
    """How many workers a loader has; None when this file does not say, 0 when none are asked for."""
    given, scope = call.argument("num_workers", 5), call.scope
    if given is None:
        given, scope = expanded(script, call).get("num_workers", (None, scope))
    if given is None:
        return 0
    counts = [_count(script, origin.node) for origin in script.trace.origins(given, scope)]
    known = [count for count in counts if count is not None]
    return max(known) if known and len(known) == len(counts) else None


def expanded(script: Script, call: Call) -> dict[str, tuple[ast.expr, Scope]]:
    """What CALL is given by **options that this file spells out in full; empty when any of it cannot be seen."""
    found: dict[str, tuple[ast.expr, Scope]] = {}
    for keyword in (each for each in call.node.keywords if each.arg is None):
        if (handed := _handed_on(script, keyword.value, call.scope)) is not None:
            found |= handed
            continue
        origins = script.trace.origins(keyword.value, call.scope)
        if len(origins) != 1 or _grows(script, keyword.value):
            return {}
        match origins[0].node:
            case ast.Dict(keys=keys, values=values) if all(isinstance(key, ast.Constant) for key in keys):
                pairs = zip(keys, values, strict=True)
                found |= {str(k.value): (value, origins[0].scope) for k, value in pairs if isinstance(k, ast.Constant)}
            case ast.Call(func=ast.Name(id="dict"), args=[], keywords=words) if all(each.arg for each in words):
                found |= {each.arg: (each.value, origins[0].scope) for each in words if each.arg}
            case _:
                return {}
    return found


def _handed_on(script: Script, node: ast.expr, scope: Scope) -> dict[str, tuple[ast.expr, Scope]] | None:
    """What the only call of a function gives the **options that it hands on; None where that cannot be seen."""
    function = scope.node
    if not isinstance(function, ast.FunctionDef) or function.args.kwarg is None:
        return None
    sites = script.trace.sites(scope) if dotted(node) == function.args.kwarg.arg else ()
    if len(sites) != 1 or any(each.arg is None for each in sites[0].node.keywords):
        return None
    named = {each.arg for each in scope.parameters}
    given = [(each.arg, each.value) for each in sites[0].node.keywords if each.arg and each.arg not in named]
    return {word: (value, sites[0].scope) for word, value in given}


def _grows(script: Script, options: ast.expr) -> bool:
    """Whether anything is put into OPTIONS later."""
    name = dotted(options)
    changed = any(dotted(call.receiver) == name for call in script.calls("update", "setdefault", "pop"))
    return not name or changed or any(f"{name}[]" in each.stores for each in script.facts.scopes)


def _count(script: Script, node: ast.expr | None) -> int | None:
    """The number that NODE is; of an option of the command line, its default."""
    match node:
        case ast.Constant(value=int(value)):
            return value
        case ast.Attribute(attr=word):
            return next((each for each in _defaults(script, word)), None)
    return None


def _defaults(script: Script, word: str) -> Iterator[int]:
    for call in script.calls("add_argument"):
        options = [each.value for each in call.node.args if isinstance(each, ast.Constant)]
        if any(str(each).lstrip("-").replace("-", "_") == word for each in options):
            match call.argument("default"):
                case ast.Constant(value=int(value)):
                    yield value


def _is_told(script: Script, call: Call) -> bool:
    """Whether a worker_init_fn, or arguments that cannot be seen, may tell each worker its part."""
    further = expanded(script, call)
    if any(keyword.arg is None for keyword in call.node.keywords) and not further:
        return True
    given = call.argument("worker_init_fn", 10) or further.get("worker_init_fn", (None,))[0]
    if given is None or (isinstance(given, ast.Constant) and given.value is None):
        return False
    own = script.trace.definition(given, call.scope)
    node = own.node if own is not None else given
    if own is None and not isinstance(given, ast.Lambda):
        return True
    inside = {dotted(each).rpartition(".")[2] for each in ast.walk(node) if isinstance(each, ast.Name | ast.Attribute)}
    return bool(inside & {"dataset", "get_worker_info"})


def _sources(script: Script, node: ast.expr | None, scope: Scope, deep: int = 0) -> list[Scope]:
    """The dataset classes whose instances NODE holds: also inside of Subset, ConcatDataset, random_split."""
    if node is None or deep > _DEEP:
        return []
    found: list[Scope] = []
    if (own := script.trace.instance(node, scope)) is not None:
        found.append(own)
    for origin in islice(script.trace.origins(node, scope), _MANY):
        value, inner = origin.node, origin.scope
        if value is None and origin.store is not None and origin.store.index is not None:  # a, b = random_split(…)
            value, inner = origin.store.value, origin.store.scope
        if isinstance(value, ast.Call):
            for argument in value.args:
                found += _sources(script, argument, inner, deep + 1)
        elif isinstance(value, ast.List | ast.Tuple):
            for part in value.elts:
                found += _sources(script, part, inner, deep + 1)
        elif isinstance(value, ast.Subscript):
            found += _sources(script, value.value, inner, deep + 1)
    return found
