"""What must come after sharding, or must know of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Call, Scope, dotted
from torchtriage.examine.source.flow import reaches
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.wrappers import Wrapper, kinds


@detector("source/optimizer-before-sharding")
def optimizer_before_sharding(wrapper: Wrapper) -> Iterator[Sighting]:
    """The optimizer holds the parameters as they were before sharding replaced them."""
    script = wrapper.script
    if wrapper.kind not in ("flattened", "sharded") or _keeps_parameters(wrapper):
        return
    for call, name in _places(wrapper):
        for made in call.scope.calls:
            target = (
                _target(made) if reaches(made, call) and script.roles.made(made.node, call.scope, "optimizer") else ""
            )
            if target and _takes(made, name, call.scope) and not _is_replaced(script, target, call):
                yield script.seen(
                    made.node,
                    f"{dotted(call.node.func)} in line {call.node.lineno} replaces the parameters: "
                    f"{target} goes on with the old ones, and training stands still",
                )


def _places(wrapper: Wrapper) -> Iterator[tuple[Call, str]]:
    """Where a model is sharded, and its name there: at the wrapper, or where a function that wraps is called."""
    name, scope = dotted(wrapper.module), wrapper.call.scope
    words = [each.arg for each in scope.parameters]
    sites = wrapper.script.trace.sites(scope) if name in words else ()
    if name and not sites:
        yield wrapper.call, name
    root, _, rest = name.partition(".")
    if rest and root == scope.receiver:  # a method of the class that also makes the optimizer
        for site in wrapper.script.trace.sites(scope):
            if site.scope.host is scope.host and dotted(site.receiver) == site.scope.receiver:
                yield site, f"{site.scope.receiver}.{rest}"
    for site in sites:
        given = dotted(site.argument(name, words.index(name) - (scope.receiver in words[:1])))
        if given:
            yield site, given


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
        case ast.Assign(targets=[target], value=value) if value is made.node:
            return dotted(target)
    return ""


def _takes(made: Call, name: str, scope: Scope) -> bool:
    """Whether the optimizer is made of NAME's parameters, directly, through one local name or by a helper."""
    if any(dotted(each) == name for each in made.arguments):
        return True
    given = made.argument("params", 0)
    values = [store.value for store in scope.stores.get(dotted(given), ())] if isinstance(given, ast.Name) else [given]
    wanted = {f"{name}.parameters", f"{name}.named_parameters"}
    return any(
        isinstance(node, ast.Call) and dotted(node.func) in wanted
        for value in values
        if value is not None
        for node in ast.walk(value)
    )


def _is_replaced(script: Script, target: str, call: Call) -> bool:
    """Whether the optimizer is made again, or given other parameters, after the sharding."""
    root, _, rest = target.partition(".")
    host = call.scope.host if root == call.scope.receiver else None
    stores = host.attributes.get(rest, []) if host is not None else call.scope.stores.get(target, [])
    if sum(1 for store in stores if store.how == "assign" and not _is_none(store.value)) > 1:
        return True
    return any(script.calls("add_param_group")) or "param_groups" in {
        name.rpartition(".")[2].removesuffix("[]") for scope in script.facts.scopes for name in scope.stores
    }


def _is_none(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


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


def _is_unsharded(script: Script, made: ast.Call) -> bool:
    """Whether the wrapper may keep whole parameters on every rank: NO_SHARD, or a strategy that is not known."""
    given = next((k.value for k in made.keywords if k.arg in ("sharding_strategy", None)), None)
    return given is not None and not script.names.resolve(given, script.facts.scopes[0]).endswith(
        (".FULL_SHARD", ".SHARD_GRAD_OP", ".HYBRID_SHARD")
    )
