"""What meets a model on its device without having been moved there."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.devices import Devices
from torchtriage.examine.source.facts import Call, Scope, dotted
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.steps import TrainingStep
from torchtriage.examine.source.torch_api.symbols import symbols
from torchtriage.examine.source.wrappers import kinds
from torchtriage.specialists.distributed_training_strategies.rules.inside import made_inside, made_on_the_way
from torchtriage.specialists.distributed_training_strategies.rules.placement import (
    MOVES,
    has_move,
    is_device,
    is_loader,
    met,
    moved_by,
    parts,
    placed,
    split_batch,
    takes_as_is,
)

_FIXED = frozenset({"torch.tensor", "torch.as_tensor", "torch.ones", *symbols().tensor_classes})


@detector("source/device-mismatch")
def device_mismatch(step: TrainingStep) -> Iterator[Sighting]:
    """A part of the batch, or a tensor made on the way, stays on the CPU, though the model is on the device."""
    yield from split_batch(step)
    script = step.script
    elsewhere = any(script.calls("set_default_device", "set_default_tensor_type")) or any(
        isinstance(call.statement, ast.With) for call in script.named("torch.device")
    )
    if script.hidden or not step.backwards or elsewhere:
        return
    yield from _by_key(step)
    yield from _weights(step)
    yield from made_on_the_way(step)
    model = _model(step)
    move = placed(step, model) if model is not None else None
    if model is not None and move is None:
        yield from _left(step, model)
    elif model is not None and takes_as_is(script, model, made_inside=False):
        for host in _classes(script, model):
            if (forward := host.inner.get("forward")) is not None:
                yield from made_inside(script, forward)


def _classes(script: Script, model: Call) -> list[Scope]:
    """The classes of this file that MODEL, and what it is made of, are instances of."""
    found: list[Scope] = []
    origins = script.trace.origins(model.node.func, model.scope)
    calls = [(each, end.scope) for end in origins if end.call for each in ast.walk(end.call)]
    for node, scope in calls:
        own = script.trace.definition(node.func, scope) if isinstance(node, ast.Call) else None
        if (
            own is not None
            and own.kind == "class"
            and own not in found
            and "torch.nn.Module" in script.trace.bases(own)
        ):
            found.append(own)
            calls += [(call.node, each) for each in script.facts.scopes if each.host is own for call in each.calls]
    return found


def _model(step: TrainingStep) -> Call | None:
    """The call of a model that this file makes."""
    for event in step.events:
        call = event.call
        if call is None or kinds(step.script, call.node.func, call.scope):
            continue
        if step.script.roles.made(call.node.func, call.scope, "model"):
            return call
    return None


# batch["x"].to(device) beside batch["y"]


def _by_key(step: TrainingStep) -> Iterator[Sighting]:
    owner, scope = step.ring.block.owner, step.ring.scope
    if not isinstance(owner, ast.For) or not is_loader(step, owner.iter):
        return
    target = owner.target.elts[-1] if isinstance(owner.target, ast.Tuple) and owner.target.elts else owner.target
    if not isinstance(target, ast.Name) or len(scope.stores.get(target.id, ())) != 1:
        return
    left, moved = _entries(step, owner, target.id)
    if any(call.tail in MOVES and dotted(call.receiver) == target.id for call in scope.calls):
        return
    for name in left:
        for other, move in moved.items():
            use = met(step, name, other)
            if use is not None:
                yield step.script.seen(
                    use.node,
                    f"{other} is moved to the device in line {move.node.lineno}, {name} stays where the loader made it",
                )
                return


def _entries(step: TrainingStep, owner: ast.For, batch: str) -> tuple[list[str], dict[str, Call]]:
    """The names of entries of the BATCH that are taken as they are, and of those that are moved."""
    left: list[str] = []
    moved: dict[str, Call] = {}
    moves = {id(call.node): call for _, call in step.calls(*MOVES) if is_device(step, call)}
    for each in owner.body:
        match each:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if len(step.ring.scope.stores[name]) == 1:
                move = moves.get(id(value))
                if _is_entry(value, batch):
                    left.append(name)
                elif move is not None and move.receiver is not None and _is_entry(move.receiver, batch):
                    moved[name] = move
    return left, moved


def _is_entry(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Subscript) and dotted(node.value) == name and isinstance(node.slice, ast.Constant)


# a criterion with weights


def _weights(step: TrainingStep) -> Iterator[Sighting]:
    script = step.script
    for event in step.events:
        call = event.call
        made = script.roles.made(call.node.func, call.scope, "criterion") if call is not None else []
        if call is None or len(made) != 1 or made[0].made is None or made[0].scope is None:
            continue
        last = dotted(call.node.func).rpartition(".")[2]
        if any(dotted(each.receiver).rpartition(".")[2] == last for each in script.calls(*MOVES)) or not last:
            continue
        home = made[0].scope
        if home.host is not None and "torch.nn.Module" in script.trace.bases(home.host):
            continue
        for keyword in made[0].made.keywords:
            if keyword.arg in ("weight", "pos_weight") and _stays(script, keyword.value, home):
                names = [each.id for each in call.node.args if isinstance(each, ast.Name)]
                moves = [move for name in names if (move := moved_by(step, name)) is not None]
                if moves and not _is_moved_at_once(script, last):
                    yield script.seen(
                        call.node,
                        f"the target is moved to the device in line {moves[0].node.lineno}, the {keyword.arg} given in "
                        f"line {keyword.value.lineno} stays on the CPU",
                    )
                    return


def _is_moved_at_once(script: Script, last: str) -> bool:
    stores = (s for scope in script.facts.scopes for name in (last, f"self.{last}") for s in scope.stores.get(name, ()))
    return any(store.value is not None and has_move(store.value) for store in stores)


def _stays(script: Script, node: ast.expr, scope: Scope) -> bool:
    """Whether NODE is surely a tensor of more than one number that was made on the CPU and never moved."""
    if isinstance(node, ast.Name | ast.Attribute):
        last = dotted(node).rpartition(".")[2]
        root, _, rest = dotted(node).partition(".")
        host = scope.host if rest and root == scope.receiver else None
        stores = host.attributes.get(rest, []) if host is not None else script.names.stores(dotted(node), scope)
        if any(dotted(each.receiver).rpartition(".")[2] == last for each in script.calls(*MOVES)):
            return False
        return bool(stores) and all(
            store.how == "assign" and store.index is None and store.value is not None
            and not isinstance(store.value, ast.Name) and _stays(script, store.value, store.scope)
            for store in stores
        )  # fmt: skip
    if not isinstance(node, ast.Call) or script.names.resolve(node.func, scope) not in _FIXED or not node.args:
        return False
    first = node.args[0]
    listed = isinstance(first, ast.List | ast.Tuple) or script.names.resolve(node.func, scope) == "torch.ones"
    return listed and all(keyword.arg not in ("device", None) for keyword in node.keywords)


# a model that nothing moves


def _left(step: TrainingStep, model: Call) -> Iterator[Sighting]:
    script, owner = step.script, step.ring.block.owner
    names = parts(owner) if isinstance(owner, ast.For) and is_loader(step, owner.iter) else []
    first = dotted(model.node.args[0]) if model.node.args else ""
    if model.scope is not step.ring.scope or first not in names:
        return
    moves = {name: moved_by(step, name) for name in names}
    move = moves[first]
    if move is None or not _is_sure(step, move) or None in moves.values():
        return
    inputs = {dotted(target) for scope in script.facts.scopes for target in _targets(scope)}
    if any(dotted(each.receiver) not in inputs for each in script.calls(*MOVES) if each.receiver is not None):
        return
    for origin in script.trace.origins(model.node.func, model.scope):
        given = origin.call.keywords if origin.call is not None else []
        if origin.call is None or any(keyword.arg in ("device", "device_map", "gpu", None) for keyword in given):
            return
        if any("device" in dotted(each).lower() for each in origin.call.args) or script.shows(origin.call, "model"):
            return
    if takes_as_is(script, model):
        yield script.seen(
            model.node,
            f"{first} is moved to the device in line {move.node.lineno}, and nothing moves "
            f"{script.source(model.node.func)}: its parameters are on the CPU",
        )


def _is_sure(step: TrainingStep, move: Call) -> bool:
    return move.tail == "cuda" or Devices(step.script).is_accelerator(move.argument("device", 0), move.scope)


def _targets(scope: Scope) -> Iterator[ast.expr]:
    """The names that loops give to what they go through, and what those are taken apart into."""
    for stores in scope.stores.values():
        for store in stores:
            if store.how == "element" or (
                store.how == "assign" and store.index is not None and isinstance(store.value, ast.Name)
            ):
                yield ast.Name(store.name)
