"""Whether the parts of a batch meet on one device."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting
from torchtriage.examine.source.devices import Devices
from torchtriage.examine.source.facts import Call, Scope, dotted
from torchtriage.examine.source.names import table
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.steps import TrainingStep
from torchtriage.examine.source.torch_api.families import RESHAPES, UPLOADS
from torchtriage.examine.source.wrappers import kinds

# What a device is called that comes from elsewhere.
_DEVICE = re.compile(r"_?(?:dev|device|gpu|local_rank|rank|gpu_id|device_id)")
_WHOLE = ("torch.nn.", "torchvision.models.")
MOVES = UPLOADS
_SHAPES = RESHAPES | {"float"}


def split_batch(step: TrainingStep) -> Iterator[Sighting]:
    """A part of the batch stays on the CPU, though the model and the other part are on the device."""
    script, owner = step.script, step.ring.block.owner
    if step.script.hidden or not isinstance(owner, ast.For) or not step.backwards:
        return
    scope, batch = _taken_apart(step, owner)
    if len(batch) != 2 or not is_loader(step, owner.iter) or _is_touched(step, batch, scope):
        return
    moves = {name: moved_by(step, name, scope) for name in batch}
    moved = [name for name in batch if moves[name] is not None]
    if len(moved) == 1:
        left = next(name for name in batch if name not in moved)
        use, move = met(step, left, moved[0], scope), moves[moved[0]]
        if use is not None and move is not None and not _is_elsewhere(script, use):
            yield script.seen(
                use.node,
                f"{moved[0]} is moved to the device in line {move.node.lineno}, {left} stays where the loader made it",
            )
    if (not moved or moved == batch[1:]) and scope is step.ring.scope:
        yield from _fed(step, batch[0], sure=bool(moved))


def _taken_apart(step: TrainingStep, owner: ast.For) -> tuple[Scope, list[str]]:
    """The names of an input and a target, and the function that takes the batch apart: the loop's, or one it calls."""
    scope, batch = step.ring.scope, parts(owner)
    target = owner.target.elts[-1] if isinstance(owner.target, ast.Tuple) and owner.target.elts else owner.target
    whole = target.id if isinstance(target, ast.Name) else ""
    for event in step.events:
        call = event.call
        if call is None or call.scope is not step.ring.scope:
            continue
        own = step.script.trace.definition(call.node.func, call.scope)
        if own is None or own.kind != "function" or len(step.script.trace.sites(own)) != 1:
            continue
        words = [each.arg for each in own.parameters][1 if own.receiver else 0 :]
        given = [dotted(each.value if isinstance(each, ast.Starred) else each) for each in call.node.args]
        if batch and given[: len(batch)] == batch and not any(moved_by(step, each) for each in batch):
            return own, words[: len(batch)]
        if not batch and whole in given:
            name = words[given.index(whole)] if given.index(whole) < len(words) else ""
            pair = next((p for s in getattr(own.node, "body", ()) if (p := _unpacked(s, name)) is not None), None)
            names = [each.id for each in pair.elts if isinstance(each, ast.Name)] if pair is not None else []
            return own, names
    return scope, batch


def _fed(step: TrainingStep, name: str, *, sure: bool) -> Iterator[Sighting]:
    """The input goes as it came into a model that was moved. SURE: its target is moved, so it needed to be."""
    script, scope = step.script, step.ring.scope
    calls = [call for event in step.events if (call := event.call) is not None]
    if any(call.tail in MOVES and _holds(each, name) for call in calls for each in _all(call)):
        return
    for call in calls:
        if call.scope is not scope or [dotted(each) for each in call.node.args[:1]] != [name]:
            continue
        if not script.roles.plays(call.node.func, scope, "model") or kinds(script, call.node.func, scope):
            continue
        move = placed(step, call)
        if move is not None and takes_as_is(script, call) and (sure or _is_on_cpu(step)):
            yield script.seen(
                call.node,
                f"{script.source(call.node.func)} is moved to the device in line {move.node.lineno}, "
                f"{name} stays where the loader made it",
            )
            return


def placed(step: TrainingStep, use: Call) -> Call | None:
    """The move of the model that USE calls, before the loop."""
    script = step.script
    ends = {id(each.node) for each in script.trace.origins(use.node.func, use.scope) if each.node is not None}
    for call in script.calls(*MOVES):
        if call.receiver is None or not is_device(step, call) or script.name(call):
            continue
        if any(id(each.node) in ends for each in script.trace.origins(call.receiver, call.scope)):
            return call
    return None


def takes_as_is(script: Script, use: Call, *, made_inside: bool = True) -> bool:
    """Whether the model surely moves nothing by itself: torch's and torchvision's, and classes of this file."""
    made = [each for each in script.trace.origins(use.node.func, use.scope) if each.call is not None]
    for each in made:
        own = script.trace.definition(each.call.func, each.scope) if each.call is not None else None
        if own is not None:
            methods = [scope for scope in script.facts.scopes if scope.host is own]
            if any(
                call.tail in (*MOVES, "to_device", "device") and made_inside
                for scope in methods
                for call in scope.calls
            ):
                return False
        elif not script.names.resolve(each.call and each.call.func, each.scope).startswith(_WHOLE):
            return False
    return bool(made)


def _is_on_cpu(step: TrainingStep) -> bool:
    """Whether the loader's data set surely keeps its samples on the CPU: torchvision's, or a class without devices."""
    script = step.script
    for part in step.loaders():
        data = part.made.args[0] if part.made is not None and part.made.args else None
        for origin in script.trace.origins(data, part.scope) if part.scope is not None else ():
            name = script.names.resolve(origin.call.func, origin.scope) if origin.call is not None else ""
            if not name.startswith("torchvision.datasets."):
                return False
        return data is not None
    return False


def parts(owner: ast.For) -> list[str]:
    """The names of an input and a target: (x, y), (i, (x, y)) from enumerate, or x, y = batch in the loop."""
    target = owner.target
    if isinstance(target, ast.Tuple) and len(target.elts) == 2 and _is_enumerated(owner.iter):
        target = target.elts[1]
    if isinstance(target, ast.Name):
        target = next((pair for each in owner.body if (pair := _unpacked(each, target.id)) is not None), target)
    names = [each.id for each in target.elts if isinstance(each, ast.Name)] if isinstance(target, ast.Tuple) else []
    return names if isinstance(target, ast.Tuple) and len(names) == len(target.elts) else []


def _is_enumerated(node: ast.expr) -> bool:
    calls = (each for each in ast.walk(node) if isinstance(each, ast.Call))
    return any(isinstance(each.func, ast.Name) and each.func.id == "enumerate" for each in calls)


def _unpacked(statement: ast.stmt, name: str) -> ast.Tuple | None:
    match statement:
        case ast.Assign(targets=[ast.Tuple() as pair], value=ast.Name(id=given)) if given == name:
            return pair
    return None


def is_loader(step: TrainingStep, node: ast.expr) -> bool:
    """Whether a loader gives the batch as it is; enumerate alone would give a number first."""
    script, scope = step.script, step.ring.scope
    while isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] in ("enumerate", "tqdm") and node.args:
        node = node.args[0]
    made = script.roles.made(node, scope, "loader")
    for part in made:
        if part.made is not None and any(keyword.arg in ("collate_fn", None) for keyword in part.made.keywords):
            return False
    return bool(made) or script.roles.plays(node, scope, "loader")


def _is_touched(step: TrainingStep, batch: list[str], scope: Scope) -> bool:
    """Whether other code gets parts of the batch in its hands first and may move them: x, y = prepare(x, y)."""
    for event in step.events:
        store = event.fact
        if isinstance(store, Call) or store.name not in batch or store.how in ("element", "parameter"):
            continue
        whole = isinstance(store.value, ast.Name) and isinstance(store.node, ast.Assign) and store.index is not None
        if store.scope is not scope and store.scope is not step.ring.scope:
            return True
        if store.scope is scope and not (whole or _is_move(store.value)):
            return True
    return False


def _is_move(node: ast.expr | None) -> bool:
    if isinstance(node, ast.Tuple):
        return all(_is_move(each) or isinstance(each, ast.Name) for each in node.elts)
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)


def moved_by(step: TrainingStep, name: str, scope: Scope | None = None) -> Call | None:
    """The move of NAME to a device, in whatever form; a dictionary or a list of tensors is not known."""
    for _, call in step.calls(*MOVES):
        if dotted(call.receiver) == name and call.scope is (scope or step.ring.scope) and is_device(step, call):
            return call
    return None


def is_device(step: TrainingStep, call: Call) -> bool:
    """Whether the target may be an accelerator, and surely is no type."""
    if call.tail == "cuda":
        return True
    target = call.argument("device", 0)
    if target is None:
        return False
    word = dotted(target).rpartition(".")[2].lower()
    return bool(_DEVICE.fullmatch(word)) or Devices(step.script).is_accelerator(target, call.scope)


def met(step: TrainingStep, left: str, moved: str, scope: Scope | None = None) -> Call | None:
    """The call of a loss in which LEFT, as it came, meets what the model made of MOVED, or the other way round."""
    scope = scope or step.ring.scope
    uses = [call for event in step.events if (call := event.call) is not None and call.scope is scope]
    if any(_holds(each, left) and call.tail in (*MOVES, "type_as") for call in uses for each in _all(call)):
        return None
    for call in uses:
        if not _is_loss(step.script, call) or len(call.node.args) < 2:
            continue
        names = [dotted(each) for each in call.node.args[:2]]
        other = next((each for each in call.node.args[:2] if dotted(each) != left), None)
        if left in names and other is not None and _comes_from(step, other, moved, scope):
            return call
    return None


def _all(call: Call) -> list[ast.expr]:
    return [*call.arguments, *([call.receiver] if call.receiver is not None else [])]


def _holds(node: ast.expr, name: str) -> bool:
    return any(isinstance(each, ast.Name) and each.id == name for each in ast.walk(node))


def _is_loss(script: Script, call: Call) -> bool:
    losses: list[str] = table()["graph"]["losses"]
    if call.tail in losses and script.name(call).startswith("torch.nn.functional."):
        return True
    made = script.roles.made(call.node.func, call.scope, "criterion")
    return any(part.name.startswith("torch.nn.") for part in made)


def _comes_from(step: TrainingStep, node: ast.expr, moved: str, scope: Scope) -> bool:
    """Whether NODE is the plain output of the model for MOVED: model(x), or the name that it was given."""
    if isinstance(node, ast.Name):
        stores = [store for store in scope.stores.get(node.id, ()) if store.how == "assign"]
        return len(stores) == 1 and stores[0].value is not None and _comes_from(step, stores[0].value, moved, scope)
    while True:
        match node:
            case ast.Attribute(value=inner) | ast.Subscript(value=inner):
                node = inner
            case ast.Call(func=ast.Attribute(value=inner)) if _is_shaped(node):
                node = inner
            case _:
                break
    if not isinstance(node, ast.Call) or not step.script.roles.plays(node.func, scope, "model"):
        return False
    return any(_holds(each, moved) for each in node.args)


def _is_shaped(node: ast.expr) -> bool:
    """Whether NODE only gives another shape to what a model gave: output.view(-1), output.squeeze(1)."""
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in RESHAPES | {"float"}
    )


def _is_elsewhere(script: Script, use: Call) -> bool:
    """Whether a wrapper that moves inputs by itself makes this too uncertain: DataParallel may gather on the CPU."""
    return any(kind == "scattered" for kind, _ in kinds(script, use.node.func, use.scope))


def has_move(node: ast.expr) -> bool:
    return any(
        isinstance(each, ast.Call)
        and (dotted(each.func).rpartition(".")[2] in MOVES or getattr(each.func, "attr", "") in MOVES)
        for each in ast.walk(node)
    )
