"""What must come after sharding, or must know of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Call, dotted
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.wrappers import Wrapper, kinds
from torchtriage.specialists.distributed_training_strategies.rules.things import meetings, things


@detector("source/optimizer-before-sharding")
def optimizer_before_sharding(wrapper: Wrapper) -> Iterator[Sighting]:
    """The optimizer holds the parameters as they were before sharding replaced them."""
    script, call = wrapper.script, wrapper.call
    if wrapper.kind not in ("flattened", "sharded") or _keeps_parameters(wrapper):
        return
    model = things(script, wrapper.module, call.scope) - {id(call.node)}
    made = [each for each in _optimizers(script) if _things_of(script, each) & {*model, id(call.node)}]
    met = [(each, meeting) for each in made for meeting in meetings(script, each, call)]
    right = {id(meeting.first.scope) for _, meeting in met if not meeting.in_order}
    early = [pair for pair in met if id(pair[1].first.scope) not in right and not _is_changed(script, pair[0])]
    for each, meeting in early[:1]:
        alone = len(script.trace.sites(each.scope)) <= 1
        yield script.seen(
            (each if alone else meeting.first).node,
            f"{dotted(call.node.func)} in line {call.node.lineno} replaces the parameters: "
            f"{_target(each if alone else meeting.first)} goes on with the old ones, and training stands still",
        )


def _optimizers(script: Script) -> list[Call]:
    return [
        call
        for calls in script.facts.calls.values()
        for call in calls
        if script.roles.of_class(script.name(call)) == "optimizer"
    ]


def _things_of(script: Script, made: Call) -> set[int]:
    """The models whose parameters an optimizer is made of: directly, through names and lists, or by a helper."""
    found: set[int] = set()
    asked: set[int] = set()
    values = [(each, made.scope) for each in made.arguments]
    while values:
        value, scope = values.pop()
        if id(value) in asked or len(asked) > 60:
            continue
        asked.add(id(value))
        for node in ast.walk(value):
            match node:
                case ast.Call(func=ast.Attribute(value=model, attr="parameters" | "named_parameters")):
                    found |= things(script, model, scope)
                case ast.Call() if script.trace.definition(node.func, scope) is not None:
                    for each in node.args:
                        found |= things(script, each, scope)
                case ast.Name(id=name):
                    stores = script.names.stores(name, scope)
                    values += [(s.value, s.scope) for s in stores if s.value is not None and s.how == "assign"]
    return found


def _keeps_parameters(wrapper: Wrapper) -> bool:
    """FullyShardedDataParallel(use_orig_params=True) keeps the parameters that the optimizer knows."""
    flag = next((k.value for k in wrapper.call.node.keywords if k.arg in ("use_orig_params", None)), None)
    return (
        wrapper.kind == "flattened"
        and flag is not None
        and not (isinstance(flag, ast.Constant) and flag.value is False)
    )


def _target(made: Call) -> str:
    match made.statement:
        case ast.Assign(targets=[target], value=value) if value is made.node and dotted(target):
            return dotted(target)
    return "the optimizer"


def _is_changed(script: Script, made: Call) -> bool:
    """Whether the optimizer may be made again by other code, or be given other parameters, after the sharding."""
    if any(script.calls("add_param_group")) or script.shows(made.node, "optimizer"):
        return True
    return any(
        name.rpartition(".")[2].removesuffix("[]") == "param_groups" and "." in name
        for scope in script.facts.scopes
        for name in scope.stores
    )


@detector("source/clip-on-sharded")
def clip_on_sharded(script: Script) -> Iterator[Sighting]:
    """Gradients are clipped by the norm of this rank's shards alone."""
    clips = list(script.named("torch.nn.utils.clip_grad_norm_"))
    if (
        not clips
        or script.hidden
        or any(call.receiver is not None and not script.name(call) for call in script.calls("clip_grad_norm_"))
    ):
        return
    for call in clips:
        model = _whose(script, call)
        found = kinds(script, model, call.scope)
        if model is None or not found or any(kind != "flattened" for kind, _ in found):
            continue
        if not any(_is_unsharded(script, made) for _, made in found):
            yield script.seen(
                call.node,
                f"{dotted(model)} was sharded in line {found[0][1].lineno}: each rank sees the norm of its own shards "
                "here and scales its gradients by another factor than the others",
            )


def _whose(script: Script, call: Call) -> ast.expr | None:
    """The module whose .parameters() are clipped."""
    given = call.argument("parameters", 0)
    values = [each.node for each in script.trace.origins(given, call.scope)] if isinstance(given, ast.Name) else [given]
    return next((model for value in values if (model := _owner(value)) is not None), None)


def _owner(value: ast.expr | None) -> ast.expr | None:
    """The module of model.parameters(), also inside of a list of them or a filter over them."""
    match value:
        case ast.Call(func=ast.Attribute(value=model, attr="parameters")):
            return model
        case ast.Call(func=ast.Name(id="list" | "tuple" | "filter" | "iter"), args=[*_, inner]):
            return _owner(inner)
        case ast.ListComp(generators=[part]) | ast.GeneratorExp(generators=[part]):
            return _owner(part.iter)
    return None


def _is_unsharded(script: Script, made: ast.expr) -> bool:
    """Whether the wrapper may keep whole parameters on every rank: NO_SHARD, or a strategy that is not known."""
    keywords = made.keywords if isinstance(made, ast.Call) else []
    given = next((k.value for k in keywords if k.arg in ("sharding_strategy", None)), None)
    return given is not None and not script.names.resolve(given, script.facts.scopes[0]).endswith(
        (".FULL_SHARD", ".SHARD_GRAD_OP", ".HYBRID_SHARD")
    )
