"""Whose evaluation figure is reported."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Call, Scope, Store, dotted
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.torch_api.symbols import symbols

_REDUCES = re.compile(r"reduc|gather|sync|collect|broadcast|accelerat|concat_all|world", re.IGNORECASE)
_METRICS = re.compile(r"(?<!sklearn\.)metric|torcheval|^evaluate", re.IGNORECASE)
_SCORES = re.compile(r"_score$|^roc_auc|^average_precision|^classification_report$|^confusion_matrix$|^mean_.*_error$")
_OFF = symbols().grad_free
_OTHER = frozenset({"synchronize", "convert_sync_batchnorm", "no_sync", "ReduceLROnPlateau", "get_world_size"})


@detector("source/metrics-not-reduced")
def metrics_not_reduced(script: Script) -> Iterator[Sighting]:
    """A figure that each rank counts over its own share is reported as that of the whole set."""
    samplers = list(script.named("torch.utils.data.distributed.DistributedSampler"))
    if not samplers or script.hidden:
        return
    for scope in script.facts.scopes:
        if scope.kind == "function" and not _reduces(script, scope):
            yield from _counted(script, scope, inline=not _is_evaluation(script, scope))


def _reduces(script: Script, scope: Scope) -> bool:
    """Whether anything in this file may add up the figures of SCOPE over the ranks: a collective, a metric object."""
    calls = (call for tail, calls in script.facts.calls.items() if tail not in _OTHER for call in calls)
    return any(_REDUCES.search(call.tail) and not _is_of_training(script, call, scope) for call in calls) or any(
        _REDUCES.search(name) or _METRICS.search(name)
        for name in script.facts.imports
        if name.rpartition(".")[2] not in _OTHER
    )


def _is_of_training(script: Script, call: Call, scope: Scope) -> bool:
    """Whether a collective of torch surely adds up something else: the loss of the function that trains."""
    home = call.scope
    if not script.name(call).startswith("torch.distributed.") or home is scope or home.kind != "function":
        return False
    trains = any(each.tail == "backward" for each in home.calls)
    given = call.node.args[0] if call.node.args else None
    if not trains or not isinstance(given, ast.Name):
        return False
    return all(store.scope is home for store in script.names.stores(given.id, home)) and not _is_from_helper(
        script, given.id, home
    )


def _is_from_helper(script: Script, name: str, home: Scope) -> bool:
    """Whether a function or method of this file may have given what NAME holds: an evaluation, perhaps."""
    asked, names = set(), [name]
    while names:
        stores = home.stores.get(names.pop(), ())
        for node in (each for store in stores if store.value is not None for each in ast.walk(store.value)):
            own = script.trace.definition(node.func, home) if isinstance(node, ast.Call) else None
            if own is not None and own.kind == "function":
                return True
            if isinstance(node, ast.Name) and node.id not in asked:
                asked.add(node.id)
                names.append(node.id)
    return not home.stores.get(name)


def _is_evaluation(script: Script, scope: Scope) -> bool:
    """Whether the function runs a model without a graph and without training it."""
    marks = [each.func if isinstance(each, ast.Call) else each for each in getattr(scope.node, "decorator_list", ())]
    decorated = any(script.names.resolve(each, scope.parent or scope) in _OFF for each in marks)
    return (decorated or any(script.name(call) in _OFF for call in scope.calls)) and not any(
        call.tail == "backward" for call in scope.calls
    )


def _is_off(script: Script, loop: Store) -> bool:
    """Whether LOOP stands under no_grad."""
    items = (
        item.context_expr for block in loop.path if isinstance(block.owner, ast.With) for item in block.owner.items
    )
    return any(isinstance(each, ast.Call) and script.names.resolve(each.func, loop.scope) in _OFF for each in items)


def _counted(script: Script, scope: Scope, *, inline: bool) -> Iterator[Sighting]:
    """Sums over a loader with a DistributedSampler that the function divides afterwards; INLINE: under no_grad."""
    for listed in _listed(scope) if not inline else ():
        looped = listed.value.generators[0].iter if isinstance(listed.value, ast.ListComp) else None
        sampler = _sampler(script, looped, scope) if looped is not None else None
        if sampler is not None and _is_divided(scope, {listed.name}, getattr(listed.node, "end_lineno", 0)):
            yield script.seen(listed.node, _said(sampler, listed.name, scope))
            return
    for store in scope.actions:
        if isinstance(store, Call) or store.how != "element" or store.value is None or store.block.kind != "loop":
            continue
        sampler = _sampler(script, store.value, scope) if not inline or _is_off(script, store) else None
        if sampler is None:
            continue
        end = getattr(store.block.owner, "end_lineno", 0) or 0
        inside = [each for each in (*_sums(scope), *_metered(script, scope)) if store.block in each.path]
        sums = {dotted(s.receiver) if isinstance(s, Call) else s.name: s.node for s in inside}
        for name, node in sums.items():
            averaged = isinstance(node, ast.Call) and _is_asked(script, scope, node, end)
            if not averaged and not _is_divided(scope, {name, *_parts(scope, name, end)}, end):
                continue
            yield script.seen(node, _said(sampler, name, scope))
            return


def _said(sampler: ast.Call, name: str, scope: Scope) -> str:
    return (
        f"the sampler of line {sampler.lineno} gives this rank its share only, and no rank adds the others' {name} "
        f"before {scope.name} makes one figure of it"
    )


def _starts_list(store: Store) -> bool:
    value = store.value
    if isinstance(value, ast.Tuple) and store.index is not None and store.index < len(value.elts):
        value = value.elts[store.index]
    return isinstance(value, ast.List)


def _listed(scope: Scope) -> Iterator[Store]:
    """Lists of figures, one for each batch: losses = [step(batch) for batch in loader]."""
    for store in list(scope.actions):
        if isinstance(store, Store) and store.how == "assign" and isinstance(store.value, ast.ListComp):
            yield store


def _sums(scope: Scope) -> list[Store | Call]:
    """What is added up, or put into a local list."""
    lists = {name for name, stores in scope.stores.items() if all(_starts_list(each) for each in stores)}
    return [
        each
        for each in scope.actions
        if (
            each.tail in ("append", "extend") and dotted(each.receiver) in lists
            if isinstance(each, Call)
            else each.how == "augment"
        )
    ]


def _metered(script: Script, scope: Scope) -> Iterator[Call]:
    """What is given to an object of this file that counts: meter.update(loss.item(), len(x))."""
    for call in scope.calls:
        if call.tail in ("update", "add", "append", "accumulate", "record") and call.receiver is not None:
            host = script.trace.instance(call.receiver, scope)
            if host is not None and dotted(call.receiver) != scope.receiver and _averaging(script, host):
                yield call


def _averaging(script: Script, host: Scope) -> set[str]:
    """The attributes and methods of a class that give an average: those that divide."""
    found = {
        name
        for each in script.trace.lineage(host)
        for name, inner in each.inner.items()
        if any(r.node.value is not None and _divides(r.node.value) for r in inner.returns)
    }
    stores = (pair for each in script.trace.lineage(host) for pair in each.attributes.items())
    return found | {name for name, given in stores if any(s.value is not None and _divides(s.value) for s in given)}


def _divides(node: ast.expr) -> bool:
    return any(isinstance(each, ast.BinOp) and isinstance(each.op, ast.Div) for each in ast.walk(node))


def _is_asked(script: Script, scope: Scope, node: ast.Call, end: int) -> bool:
    """Whether the average of the object that NODE tells is read after line END."""
    held = node.func.value if isinstance(node.func, ast.Attribute) else None
    host = script.trace.instance(held, scope) if held is not None else None
    words = _averaging(script, host) if host is not None else set()
    return any(
        isinstance(each, ast.Attribute) and each.attr in words and dotted(each.value) == dotted(held)
        for each in ast.walk(scope.node)
        if getattr(each, "lineno", 0) > end
    )


def _parts(scope: Scope, name: str, end: int) -> set[str]:
    """What NAME is taken apart into after line END: right, seen = counts.tolist()."""
    return {
        store.name
        for stores in scope.stores.values()
        for store in stores
        if store.how == "assign" and getattr(store.node, "lineno", 0) > end and _is_plain_part(store.value, name)
    }


def _is_plain_part(value: ast.expr | None, name: str) -> bool:
    match value:
        case ast.Call(func=ast.Attribute(value=inner, attr="tolist" | "item" | "cpu" | "unbind")):
            return _is_plain_part(inner, name)
        case ast.Subscript(value=inner):
            return _is_plain_part(inner, name)
        case ast.Name() | ast.Attribute():
            return dotted(value) == name
    return False


def _is_divided(scope: Scope, names: set[str], end: int) -> bool:
    """Whether one of NAMES is averaged after line END: inside, it may be a running figure for the progress bar."""
    for node in ast.walk(scope.node):
        if getattr(node, "lineno", 0) <= end:
            continue
        match node:
            case ast.BinOp(op=ast.Div(), left=left) if _holds(left, names):
                return True
            case ast.Call(func=ast.Attribute(attr="mean", value=inner), args=arguments):
                if any(_holds(each, names) for each in (inner, *arguments)):
                    return True
            case ast.Call(func=ast.Name(id="mean" | "fmean"), args=[inner]) if _holds(inner, names):
                return True
            case ast.Call(func=ast.Name(id=word) | ast.Attribute(attr=word), args=arguments) if _SCORES.search(word):
                if any(_holds(each, names) for each in arguments):
                    return True
    return False


def _holds(node: ast.expr, names: set[str]) -> bool:
    return any(dotted(each) in names for each in ast.walk(node) if isinstance(each, ast.Name | ast.Attribute))


def _sampler(script: Script, node: ast.expr, scope: Scope) -> ast.Call | None:
    while isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] in ("enumerate", "tqdm") and node.args:
        node = node.args[0]
    for part in script.roles.made(node, scope, "loader"):
        for keyword in part.made.keywords if part.made is not None else ():
            if keyword.arg == "sampler" and part.scope is not None:
                for made in script.roles.made(keyword.value, part.scope, "sampler"):
                    return made.made
    return None
