"""What the source alone shows about work that each batch repeats."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Call, Scope, Store, dotted
from torchtriage.examine.source.steps import TrainingStep
from torchtriage.examine.source.torch_api.families import UPLOADS
from torchtriage.examine.source.torch_api.symbols import symbols
from torchtriage.specialists.performance_profiling.rules.lasting import Turns, line, turn

_LOADER, _COMPILE = "torch.utils.data.DataLoader", "torch.compile"
_MOVES = UPLOADS
_MODULE = symbols().module_parts | {"eval", "train"}


@detector("source/built-in-loop")
def built_in_loop(step: TrainingStep) -> Iterator[Sighting]:
    """Something that is built once for a training is built for every batch."""
    if not step.ring.is_loop or step.ring.runs_once:
        return
    turns = Turns(step.script, step.ring)
    for event in step.events:
        call = event.call
        if call is None or turns.is_chosen(event):
            continue
        if (what := _built(step, turns, call, turns.is_sometimes(event))) is not None:
            yield step.script.seen(call.node, f"the loop in line {line(step)} {what} for every {turn(step)}")
    yield from _each_epoch(step)


def _built(step: TrainingStep, turns: Turns, call: Call, sometimes: bool) -> str | None:
    """SOMETIMES: in some turns only, or for each of several things."""
    name = step.script.name(call)
    if name == _COMPILE and call.node.args and turns.outlives(call.node.args[0], call.scope, call.node):
        return "wraps the model in torch.compile() anew"
    if call.tail in _MOVES and _is_moved_again(step, turns, call):
        return f"goes through all parameters of {dotted(call.receiver)}, which are there already,"
    if sometimes:
        return None
    if name == _LOADER and _has_workers(call):
        return "starts the worker processes of a DataLoader"
    if step.script.roles.of_class(name) == "optimizer" and _is_of_lasting_model(step, turns, call):
        return "makes a new optimizer, without the state of the last"
    return None


def _has_workers(call: Call) -> bool:
    workers = call.argument("num_workers", 5)
    return workers is not None and not (isinstance(workers, ast.Constant) and workers.value == 0)


def _is_of_lasting_model(step: TrainingStep, turns: Turns, call: Call) -> bool:
    """optimizer(model.parameters()) of a model that was made before the loop, whose step is called in it."""
    models = list(_models(step, call.argument("params", 0), call.scope))
    return (
        bool(models)
        and not step.script.name(call).endswith(".LBFGS")
        and all(turns.outlives(model, scope) and not _is_replaced(step, model) for model, scope in models)
        and not _is_compared(turns, call)
        and not _is_renewed(step)
    )


def _models(step: TrainingStep, given: ast.expr | None, scope: Scope) -> Iterator[tuple[ast.expr, Scope]]:
    """The models whose parameters an optimizer is given: all at once, chosen, in groups."""
    for origin in step.script.trace.origins(given, scope):
        for node in ast.walk(origin.node) if origin.node is not None else ():
            match node:
                case ast.Call(func=ast.Attribute(value=model, attr="parameters" | "named_parameters")):
                    yield model, origin.scope


def _is_replaced(step: TrainingStep, model: ast.expr) -> bool:
    """Whether the loop gives the model's name another value (copy.deepcopy, a meta-learner's clone)."""
    stores = (event.fact for event in step.stores(dotted(model)))
    return any(isinstance(store, Store) and store.how != "parameter" for store in stores)


def _is_compared(turns: Turns, call: Call) -> bool:
    """Whether the loop goes through settings of the optimizer: for lr in (0.1, 0.01)."""
    return not all(
        each.id == call.scope.receiver or turns.outlives(each, call.scope)
        for given in (
            *call.node.args[1:],
            *(keyword.value for keyword in call.node.keywords if keyword.arg != "params"),
        )
        for each in ast.walk(given)
        if isinstance(each, ast.Name)
    )


def _is_renewed(step: TrainingStep) -> bool:
    """Whether each turn starts a model again: with a state that it loads, or weights that it resets."""
    return any(True for _ in step.calls("load_state_dict", "reset_parameters", "apply", "deepcopy"))


def _is_moved_again(step: TrainingStep, turns: Turns, call: Call) -> bool:
    """model.to(device) of a module that outlives the loop, and that nothing in the loop takes away again."""
    name = dotted(call.receiver)
    if not name or call.receiver is None or not turns.outlives(call.receiver, call.scope):
        return False
    if call.tail == "to" and not _names_device(turns, call):
        return False
    if not _is_module(step, call, call.receiver, call.scope):
        return False
    own = call.statement.value if isinstance(call.statement, ast.Assign) else None
    if any(
        isinstance(each.fact, Store) and each.fact.value is not own and each.fact.how != "element"
        for each in step.stores(name)
    ):
        return False
    return all(other is call or dotted(other.receiver) != name for _, other in step.calls("cpu", *_MOVES))


def _names_device(turns: Turns, call: Call) -> bool:
    goal = call.argument("device", 0)
    if len(call.arguments) != 1 or goal is None:
        return False
    match goal:
        case ast.Constant(value=str()):
            return True
        case ast.Attribute(attr="device"):
            return True
        case ast.Name(id=name):
            named = "device" in name.lower() or name.lower() in ("dev", "gpu")
            return named and turns.outlives(goal, call.scope)
    return False


def _is_module(step: TrainingStep, call: Call, node: ast.expr, scope: Scope) -> bool:
    """By its role, by a method that only modules have, or as it is called at once: net.to(device)(x)."""
    if step.script.roles.plays(node, scope, "model"):
        return True
    if any(isinstance(each, ast.Call) and each.func is call.node for each in ast.walk(call.statement)):
        return True
    return any(
        other.scope is scope and not other.node.args and dotted(other.receiver) == dotted(node)
        for other in step.script.calls(*_MODULE)
    )


def _each_epoch(step: TrainingStep) -> Iterator[Sighting]:
    """A DataLoader with workers that is the same in every epoch, and is made anew for each."""
    ring = step.epochs
    if ring is None:
        return
    turns = Turns(step.script, ring)
    built = [event for event in turns.events if event.call is not None and not turns.is_sometimes(event)]
    if any(_starts_training(step, event.call) for event in built if event.call is not None):
        return
    for event in built:
        call = event.call
        if call is None or step.script.name(call) != _LOADER or not _has_workers(call):
            continue
        if all(turns.is_constant(each, call.scope) for each in call.arguments):
            where = getattr(ring.block.owner, "lineno", 0)
            yield step.script.seen(
                call.node, f"the loop in line {where} makes this DataLoader and its worker processes for every epoch"
            )


def _starts_training(step: TrainingStep, call: Call) -> bool:
    return step.script.roles.of_class(step.script.name(call)) in ("optimizer", "model")
