"""What the source alone shows about parameters that no optimizer holds."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.events import Event
from torchtriage.examine.source.facts import Call, Scope, Store, dotted
from torchtriage.examine.source.flow import reaches, shared
from torchtriage.examine.source.roles import Part
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.steps import TrainingStep, training_steps
from torchtriage.specialists.debugging_techniques.rules.likeness import given, optimizers, targets
from torchtriage.specialists.debugging_techniques.rules.values import is_off

# Modules of torch.nn that have parameters, by the beginnings of their names.
_LAYERS = tuple(
    f"torch.nn.{name}"
    for name in (
        *("Linear", "Bilinear", "LazyLinear", "Conv", "LazyConv", "Embedding", "BatchNorm", "SyncBatchNorm"),
        *("LayerNorm", "GroupNorm", "RMSNorm", "LSTM", "GRU", "RNN", "MultiheadAttention", "Transformer", "PReLU"),
    )
)
# What is done with a model that says nothing about who trains it.
_PLAIN = frozenset({"train", "eval", "to", "cuda", "cpu", "zero_grad", "apply", "float", "half", "double"})

_FIXED = ("teacher", "target", "fixed", "frozen", "random", "ref", "ema", "vgg", "percept", "clip", "prior", "pretrain")


@detector("source/parameters-not-in-optimizer")
def parameters_not_in_optimizer(script: Script) -> Iterator[Sighting]:
    """Parameters are made after the optimizer was given the model's, or never given to one."""
    if not any("optim" in name or name == "torch" for name in script.facts.imports):
        return
    made = optimizers(script)
    if not made or any(script.calls("add_param_group")):
        return
    for part in made:
        yield from _made_late(script, part)
    yield from _forgotten(script, made)


def _made_late(script: Script, part: Part) -> Iterator[Sighting]:
    """Layers that replace or join those of a model whose parameters the optimizer has got already."""
    if part.made is None or part.scope is None:
        return
    built = next((call for call in part.scope.calls if call.node is part.made), None)
    names = {dotted(module) for module in given(script, part.made, part.scope)} - {""}
    own = [dotted(target) for target in targets(part.scope, part.made)]
    if built is None or not own:
        return
    for late, node, what in _late(script, part.scope, names):
        if not reaches(built, late) or any(block.kind == "loop" for block in late.path[: shared(built, late)]):
            continue
        if not _is_used_after(part.scope, own, late) or _is_frozen(script, what):
            continue
        yield script.seen(
            node,
            f"{what} gets new parameters here; the optimizer of line {part.made.lineno} has those of before, "
            "and never changes the new ones",
        )


def _late(script: Script, scope: Scope, names: set[str]) -> Iterator[tuple[Store | Call, ast.AST, str]]:
    """Where a model of these NAMES, or a part of it, is made anew: the action, its node, and what is made."""
    for key, stores in scope.stores.items():
        whole = key.removesuffix("[]")
        if whole not in names and not any(whole.startswith(f"{name}.") for name in names):
            continue
        for store in stores:
            if store.how == "assign" and store.index is None and _is_new(script, store, key in names):
                yield store, store.node, whole
    for call in scope.calls:
        if call.tail in ("add_module", "register_module", "register_parameter", "append") and call.node.args:
            receiver = dotted(call.receiver)
            inside = any(receiver == name or receiver.startswith(f"{name}.") for name in names)
            if inside and _has_parameters(script, call.node.args[-1], scope):
                yield call, call.node, receiver


def _is_new(script: Script, store: Store, whole: bool) -> bool:
    """Whether STORE surely brings new parameters; a WHOLE model also by a class of this file or of torchvision."""
    value = _made(store.value)
    if value is None:
        return False
    if _has_parameters(script, value, store.scope):
        return not _mentions(value, store.name) or not whole
    if not whole or _mentions(value, store.name):
        return False
    own = script.trace.definition(value.func, store.scope)
    if own is not None:
        return own.kind == "class" and "torch.nn.Module" in script.trace.bases(own)
    return script.names.resolve(value.func, store.scope).startswith("torchvision.models.")


def _made(node: ast.expr | None) -> ast.Call | None:
    """The construction behind Net().to(device)."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _PLAIN:
        node = node.func.value
    return node if isinstance(node, ast.Call) else None


def _has_parameters(script: Script, node: ast.expr, scope: Scope) -> bool:
    """Whether NODE is a layer with parameters, a Parameter, or a Sequential that holds such a layer."""
    if not isinstance(node, ast.Call):
        return False
    name = script.names.resolve(node.func, scope)
    if name == "torch.nn.Parameter":
        return not any(keyword.arg == "requires_grad" for keyword in node.keywords)
    if name in ("torch.nn.Sequential", "torch.nn.ModuleList"):
        return any(_has_parameters(script, each, scope) for each in node.args)
    return name.startswith(_LAYERS)


def _mentions(node: ast.expr, name: str) -> bool:
    return any(dotted(inner) == name for inner in ast.walk(node))


def _is_used_after(scope: Scope, own: list[str], late: Store | Call) -> bool:
    """Whether the optimizer is stepped or handed on later, and is not made anew before that."""
    if any(store.order > late.order for name in own for store in scope.stores.get(name, ())):
        return False
    if any(name.startswith(f"{scope.receiver}.") for name in own if scope.receiver):
        return True
    returned = (each.node.value for each in scope.returns if each.order > late.order and each.node.value is not None)
    if any(dotted(node) in own for value in returned for node in ast.walk(value)):
        return True
    calls = [call for call in scope.calls if call.order > late.order]
    stepped = any(call.tail == "step" and dotted(call.receiver) in own for call in calls)
    return stepped or any(dotted(each) in own for call in calls for each in call.arguments)


def _is_frozen(script: Script, name: str) -> bool:
    if any(dotted(call.receiver).startswith(name) for call in script.calls("requires_grad_")):
        return True
    keys = (key for scope in script.facts.scopes for key in scope.stores)
    return any(key.startswith(f"{name}.") and key.endswith("requires_grad") for key in keys)


# models that no optimizer was given


def _forgotten(script: Script, made: list[Part]) -> Iterator[Sighting]:
    """A model that is called in the step, beside those that an optimizer holds."""
    modes = {dotted(call.receiver): call for call in script.calls("train") if not call.arguments and call.receiver}
    modes.pop("", None)
    known = [(part, given(script, part.made, part.scope)) for part in made if part.made and part.scope]
    if any(not modules for _, modules in known):
        return
    for step in training_steps(script):
        if step.hidden or any(step.calls("detach")):
            continue
        parts = [part for _, _, parts in step.optimizing() for part in parts]
        if len(parts) == 1 and parts[0].made is not None:
            beside = (m for p, m in known if p.scope and parts[0].scope and _is_one_place(p.scope, parts[0].scope))
            yield from _left_out(script, step, parts[0], {dotted(each) for m in beside for each in m}, modes)


def _is_one_place(one: Scope, other: Scope) -> bool:
    """Whether names mean the same in both: one function, or two methods of one class."""
    return one is other or (one.host is not None and one.host is other.host)


def _left_out(
    script: Script, step: TrainingStep, part: Part, held: set[str], modes: dict[str, Call]
) -> Iterator[Sighting]:
    events = {dotted(event.call.node.func): event for event in step.events if event.call is not None}
    called = {name: event.call for name, event in events.items() if name and event.call is not None}
    beside = [name for name in called if name in held]
    for name in called:
        if not beside or name in held or name not in called or name.count(".") > 1 or part.made is None:
            continue
        call = called[name]
        if is_off(script, call.path, call.scope) or any(name.startswith(f"{each}.") for each in held):
            continue
        if name not in modes and not _is_propagated(step, events[name], name):
            continue
        if _is_trainable(script, call) and _is_only_run(script, name):
            mode = f"put into training mode in line {modes[name].node.lineno} and " if name in modes else ""
            yield script.seen(
                part.made,
                f"{name} is {mode}called in line {call.node.lineno}, and no optimizer of this file has its parameters",
            )


def _is_propagated(step: TrainingStep, event: Event, name: str) -> bool:
    """Whether the result of a model goes on towards backward, and nothing says that it is not to be trained."""
    call = event.call
    if call is None or any(word in name.lower() for word in _FIXED):
        return False
    if not _holds_layers(step.script, call) or any(step.script.calls("eval", "load_state_dict")):
        return False
    if is_off(step.script, event.path, call.scope):
        return False
    dropped = isinstance(call.statement, ast.Expr) and call.statement.value is call.node
    return not dropped and any(reaches(event, backward.event) for backward in step.backwards)


def _holds_layers(script: Script, call: Call) -> bool:
    """Whether the class of what is called shows layers with parameters of its own; a loss mostly has none."""
    own = script.trace.instance(call.node.func, call.scope)
    if own is None:
        return True
    stored = (store for stores in own.attributes.values() for store in stores if store.value is not None)
    return any(
        _has_parameters(script, inner, store.scope)
        for store in stored
        for inner in ast.walk(store.value or ast.Pass())
        if isinstance(inner, ast.Call)
    )


def _is_trainable(script: Script, call: Call) -> bool:
    """Whether what CALL runs is surely a model with parameters, made in the same function or class that calls it."""
    made = [part for part in script.roles.parts(call.node.func, call.scope) if part.role == "model"]
    if len(made) != 1 or made[0].made is None or made[0].scope is None:
        return False
    here = _is_one_place(made[0].scope, call.scope)
    own = script.trace.definition(made[0].made.func, made[0].scope)
    return here and ((own is not None and own.kind == "class") or _has_parameters(script, made[0].made, made[0].scope))


def _is_only_run(script: Script, name: str) -> bool:
    """Whether everything that is done with NAME is to call it and to set its mode: it is given to nobody."""
    tree = script.facts.scopes[0].node
    fine: set[int] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=value, attr=attr)) if dotted(value) == name and attr in _PLAIN:
                fine.add(id(value))
            case ast.Call(func=called) if dotted(called) == name:
                fine.add(id(called))
            case ast.Name(ctx=ast.Store()) | ast.Attribute(ctx=ast.Store()):
                fine.add(id(node))
    return all(id(node) in fine for node in ast.walk(tree) if dotted(node) == name)
