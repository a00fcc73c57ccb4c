"""Which rank sees which samples, and whose figure is reported."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Scope, dotted
from torchtriage.examine.source.roles import Part
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.steps import TrainingStep
from torchtriage.examine.source.torch_api.operators import names
from torchtriage.examine.source.torch_api.symbols import symbols
from torchtriage.examine.source.wrappers import kinds, wrappers
from torchtriage.specialists.distributed_training_strategies.rules.apart import Apart
from torchtriage.specialists.distributed_training_strategies.rules.things import is_of, things

_RANKED = re.compile(r"rank|world|shard|replica|num_procs|process_index|split_by|worker_id|distribut", re.IGNORECASE)
_GIVEN = ("sampler", "batch_sampler")
_STREAMED = re.compile(r"stream|iterable|webdataset|wds|dali|synthetic|fake|dummy|random_?data", re.IGNORECASE)
_SETS = symbols().dataset_wrappers
# What a data set gives back when it is changed as a whole.
_CHANGED = frozenset(
    {"map", "filter", "shuffle", "with_format", "select", "remove_columns", "rename_column", "rename_columns", "cast"}
    | {"set_format", "with_transform", "train_test_split", "select_columns", "flatten", "sort"}
)
_DRAWN = names(trait="random") | {"uniform"}


@detector("source/same-data-on-ranks")
def same_data_on_ranks(step: TrainingStep) -> Iterator[Sighting]:
    """Every rank goes through the whole data set instead of its share."""
    script = step.script
    if step.hidden or not step.backwards:
        return
    model = next(_replicated(step), None)
    if model is None:
        return
    parts = list(step.loaders()) or list(_drawn(step))
    if not parts or not all(_is_undivided(script, part) or _is_forgotten(script, part) for part in parts):
        return
    open_ = [each for each in parts if each.made is not None and not _is_forgotten(script, each)]
    apart = Apart(script.text.parse()) if open_ else None
    if apart is not None and (_is_seeded_by_rank(script) or any(map(apart.feeds, _seeds(script)))):
        return
    if apart is not None and any(apart.feeds(each.made) for each in open_ if each.made is not None):
        return
    for part in {id(each.made): each for each in parts}.values():
        if part.made is not None and not script.shows(part.made, "loader"):
            yield script.seen(
                part.made,
                f"no DistributedSampler is here, though line {model.lineno} puts the model on every rank: "
                "each reads all samples, and N ranks do the work of an epoch N times",
            )


def _replicated(step: TrainingStep) -> Iterator[ast.expr]:
    """The wrappers of the models that the step calls."""
    for event in step.events:
        call = event.call
        if call is not None and isinstance(call.node.func, ast.Name | ast.Attribute):
            for kind, made in kinds(step.script, call.node.func, call.scope):
                if kind in ("replicated", "flattened"):
                    yield made
    sharded = [each for each in wrappers(step.script) if each.kind == "sharded" and len(each.call.arguments) == 1]
    inside = {each for wrapper in sharded for each in things(step.script, wrapper.module, wrapper.call.scope)}
    for event in step.events if inside else ():
        call = event.call
        if call is not None and things(step.script, call.node.func, call.scope) & inside:
            yield sharded[0].call.node


def _drawn(step: TrainingStep) -> Iterator[Part]:
    """The loaders from which a step takes batches by next(iterator)."""
    for _, call in step.calls("next"):
        for origin in step.script.trace.origins(call.argument("", 0), call.scope):
            match origin.node:
                case ast.Call(func=ast.Name(id="iter"), args=[loader]):
                    yield from step.script.roles.made(loader, origin.scope, "loader")


def _is_forgotten(script: Script, part: Part) -> bool:
    """Whether a sampler was made for the data of a loader, and is given to nobody."""
    if part.made is None or part.scope is None or any(k.arg in (None, *_GIVEN) for k in part.made.keywords):
        return False
    data = next((k.value for k in part.made.keywords if k.arg == "dataset"), next(iter(part.made.args), None))
    mine = things(script, data, part.scope)
    for sampler in script.named("torch.utils.data.distributed.DistributedSampler"):
        if sampler.scope is part.scope and mine & things(script, sampler.argument("dataset", 0), sampler.scope):
            return not any(
                is_of(script, each, call.scope, sampler.node)
                for calls in script.facts.calls.values()
                for call in calls
                for each in call.arguments
            )
    return False


def _is_seeded_by_rank(script: Script) -> bool:
    """Whether ranks draw their own samples on purpose: endless random batches need no division."""
    return any(_RANKED.search(ast.unparse(each)) for each in _seeds(script))


def _seeds(script: Script) -> list[ast.expr]:
    calls = script.calls("manual_seed", "seed", "seed_everything", "manual_seed_all", "set_seed", "default_rng")
    return [each for call in calls for each in call.arguments]


def _is_undivided(script: Script, part: Part) -> bool:
    """Whether a loader surely reads the whole of a data set that every rank has."""
    if part.made is None or part.scope is None:
        return False
    given = {keyword.arg: keyword.value for keyword in part.made.keywords}
    spread = _spread(script, given.pop(None), part.scope) if None in given else {}
    given = given if spread is None else {**spread, **given}
    if spread is None or len(part.made.args) > 3 or not given.keys().isdisjoint({"batch_sampler", "generator"}):
        return False
    sampler = given.get("sampler")
    if sampler is not None and not (isinstance(sampler, ast.Constant) and sampler.value is None):
        return False
    data = given.get("dataset") or (part.made.args[0] if part.made.args else None)
    return data is not None and _is_whole(script, data, part.scope)


def _spread(script: Script, node: ast.expr, scope: Scope) -> dict[str | None, ast.expr] | None:
    """What **NODE gives, when that is one dictionary that stands in the file and is changed nowhere."""
    ends = script.trace.origins(node, scope)
    name = dotted(node)
    touched = any(
        f"{name}[]" in each.stores or any(dotted(c.receiver) == name for c in each.calls) for each in (scope,)
    )
    if len(ends) != 1 or touched:
        return None
    match ends[0].node:
        case ast.Call(func=ast.Name(id="dict"), args=[], keywords=keywords) if all(each.arg for each in keywords):
            return {each.arg: each.value for each in keywords}
        case ast.Dict(keys=keys, values=values) if all(isinstance(key, ast.Constant) for key in keys):
            return {str(key.value): v for key, v in zip(keys, values, strict=True) if isinstance(key, ast.Constant)}
    return None


def _is_whole(script: Script, data: ast.expr, scope: Scope) -> bool:
    """Whether a data set is a plain one: not streamed, not drawn at random, not cut by rank."""
    if _STREAMED.search(ast.unparse(data)) or _RANKED.search(ast.unparse(data)):
        return False
    return all(_is_plain(script, each.node, each.scope) for each in script.trace.origins(data, scope))


def _is_plain(script: Script, node: ast.expr | None, scope: Scope) -> bool:
    match node:
        case (
            ast.Subscript(value=held, slice=ast.Constant(value=str()))
            | ast.Call(func=ast.Attribute(value=held, attr=_))
        ):
            changed = isinstance(node, ast.Subscript) or getattr(node.func, "attr", "") in _CHANGED
            ends = script.trace.origins(held, scope) if changed and not script.names.resolve(held, scope) else ()
            if any(each.call is not None for each in ends):
                return all(_is_plain(script, each.node, each.scope) for each in ends)
    if not isinstance(node, ast.Call):
        return node is None or isinstance(node, ast.Name | ast.Attribute)
    text = ast.unparse(node)
    if _STREAMED.search(text) or _RANKED.search(text):
        return False
    own = script.trace.definition(node.func, scope)
    if own is not None:
        return own.kind == "class" and _is_fixed(script, own)
    name = script.names.resolve(node.func, scope)
    return (
        name in _SETS
        or name.startswith(("torchvision.datasets.", "datasets.load_dataset"))
        or dotted(node.func).endswith("Dataset")
    )


def _is_fixed(script: Script, own: Scope) -> bool:
    """Whether a data set class of this file has an order and a length, draws nothing, and asks for no rank."""
    inner = {name for each in script.trace.lineage(own) for name in each.inner}
    if "__iter__" in inner or "__getitem__" not in inner:
        return False
    methods = [each for each in script.facts.scopes if each.host is own]
    drawn = any(call.tail in _DRAWN for each in methods if each.name != "__init__" for call in each.calls)
    if drawn and not any(_indexes(each) for each in methods if each.name == "__getitem__"):
        return False
    return not any(_RANKED.search(call.tail) for each in methods for call in each.calls) and not _RANKED.search(
        " ".join(own.attributes)
    )


def _indexes(method: Scope) -> bool:
    """Whether __getitem__ takes a stored sample by its number: what it draws is but a change of that."""
    words = {each.arg for each in method.parameters[1:2]}
    return any(
        isinstance(node, ast.Subscript)
        and any(isinstance(each, ast.Name) and each.id in words for each in ast.walk(node.slice))
        for node in ast.walk(method.node)
    )
