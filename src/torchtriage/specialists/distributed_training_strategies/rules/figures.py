"""Whose evaluation figure is reported."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Call, Scope, Store, dotted
from torchtriage.examine.source.script import Script

_REDUCES = re.compile(r"reduc|gather|sync|collect|broadcast|accelerat|concat_all|world", re.IGNORECASE)
_METRICS = re.compile(r"metric|torcheval|^evaluate", re.IGNORECASE)
_OTHER = frozenset({"synchronize", "convert_sync_batchnorm", "no_sync", "ReduceLROnPlateau", "get_world_size"})


@detector("source/metrics-not-reduced")
def metrics_not_reduced(script: Script) -> Iterator[Sighting]:
    """A figure that each rank counts over its own share is reported as that of the whole set."""
    samplers = list(script.named("torch.utils.data.distributed.DistributedSampler"))
    if not samplers or script.hidden or _reduces(script):
        return
    for scope in script.facts.scopes:
        if scope.kind == "function" and _is_evaluation(script, scope):
            yield from _counted(script, scope)


def _reduces(script: Script) -> bool:
    """Whether anything in this file may add up figures over the ranks: a collective, a helper, a metric object."""
    tails = (tail for tail in script.facts.calls if tail not in _OTHER)
    return any(_REDUCES.search(tail) for tail in tails) or any(
        _REDUCES.search(name) or _METRICS.search(name)
        for name in script.facts.imports
        if name.rpartition(".")[2] not in _OTHER
    )


def _is_evaluation(script: Script, scope: Scope) -> bool:
    """Whether the function runs a model without a graph and without training it."""
    off = {"torch.no_grad", "torch.inference_mode"}
    marks = [each.func if isinstance(each, ast.Call) else each for each in getattr(scope.node, "decorator_list", ())]
    decorated = any(script.names.resolve(each, scope.parent or scope) in off for each in marks)
    return (decorated or any(script.name(call) in off for call in scope.calls)) and not any(
        call.tail == "backward" for call in scope.calls
    )


def _counted(script: Script, scope: Scope) -> Iterator[Sighting]:
    """Sums over a loader with a DistributedSampler that the function divides afterwards."""
    for store in scope.actions:
        if isinstance(store, Call) or store.how != "element" or store.value is None or store.block.kind != "loop":
            continue
        sampler = _sampler(script, store.value, scope)
        if sampler is None:
            continue
        sums = {s.name: s.node for s in _sums(scope) if store.block in s.path and _is_divided(scope, s.name, store)}
        for name, node in sums.items():
            yield script.seen(
                node,
                f"the sampler of line {sampler.lineno} gives this rank its share only, and no rank adds the others' "
                f"{name} before {scope.name} divides it",
            )
            return


def _sums(scope: Scope) -> list[Store]:
    return [each for each in scope.actions if isinstance(each, Store) and each.how == "augment"]


def _is_divided(scope: Scope, name: str, loop: Store) -> bool:
    """Whether NAME is divided after the LOOP: inside, it may be a running figure for the progress bar."""
    end = getattr(loop.block.owner, "end_lineno", 0) or 0
    return any(
        isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and node.lineno > end and _holds(node.left, name)
        for node in ast.walk(scope.node)
    )


def _holds(node: ast.expr, name: str) -> bool:
    return any(dotted(each) == name for each in ast.walk(node) if isinstance(each, ast.Name | ast.Attribute))


def _sampler(script: Script, node: ast.expr, scope: Scope) -> ast.Call | None:
    while isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] in ("enumerate", "tqdm") and node.args:
        node = node.args[0]
    for part in script.roles.made(node, scope, "loader"):
        for keyword in part.made.keywords if part.made is not None else ():
            if keyword.arg == "sampler" and part.scope is not None:
                for made in script.roles.made(keyword.value, part.scope, "sampler"):
                    return made.made
    return None
