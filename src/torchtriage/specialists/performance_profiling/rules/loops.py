"""What the source alone shows about work that each batch repeats."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.events import Event
from torchtriage.examine.source.facts import Block, Call, dotted
from torchtriage.examine.source.steps import TrainingStep

_LOADER, _COMPILE = "torch.utils.data.DataLoader", "torch.compile"
_SOMETIMES = frozenset({"arm", "handler"})
_WAITS = frozenset({"item", "cpu", "tolist", "numpy"})
_MANY = 3


@detector("source/built-in-loop")
def built_in_loop(step: TrainingStep) -> Iterator[Sighting]:
    """Something that is built once for a training is built for every batch."""
    if not step.ring.is_loop or not any(step.loaders()):
        return
    for event in step.events:
        call = event.call
        if call is None or _is_sometimes(step, event):
            continue
        if (what := _built(step, call)) is not None:
            yield step.script.seen(call.node, f"the loop in line {_line(step)} {what} for every batch")


def _line(step: TrainingStep) -> int:
    return int(getattr(step.ring.block.owner, "lineno", 0))


def _is_sometimes(step: TrainingStep, event: Event) -> bool:
    """Under a condition, or in a loop of its own inside of the step."""
    path = event.path
    inside = path[path.index(step.ring.block) + 1 :] if step.ring.block in path else path
    return any(_is_conditional(block) for block in inside)


def _is_conditional(block: Block) -> bool:
    return block.kind in _SOMETIMES or block.kind == "loop"


def _built(step: TrainingStep, call: Call) -> str | None:
    name = step.script.name(call)
    if name == _COMPILE and call.node.args:
        return "compiles the model anew"
    if name == _LOADER and _has_workers(call):
        return "starts the worker processes of a DataLoader"
    if step.script.roles.of_class(name) == "optimizer" and _is_of_lasting_model(step, call):
        return "makes a new optimizer, without the state of the last"
    return None


def _has_workers(call: Call) -> bool:
    workers = call.argument("num_workers", 5)
    return workers is not None and not (isinstance(workers, ast.Constant) and workers.value == 0)


def _is_of_lasting_model(step: TrainingStep, call: Call) -> bool:
    """optimizer(model.parameters()) of a model that was made before the loop, whose step is called in it."""
    given = call.node.args[0] if call.node.args else None
    match given:
        case ast.Call(func=ast.Attribute(value=model, attr="parameters")):
            parts = step.script.roles.made(model, call.scope, "model")
            inside = {id(node) for node in ast.walk(step.ring.block.owner)}
            return bool(parts) and not any(id(part.made) in inside for part in parts) and not _is_replaced(step, model)
    return False


def _is_replaced(step: TrainingStep, model: ast.expr) -> bool:
    """Whether the loop gives the model's name another value (copy.deepcopy, a meta-learner's clone)."""
    return any(True for _ in step.stores(dotted(model)))


@detector("source/sync-bound")
def sync_bound(step: TrainingStep) -> Iterator[Sighting]:
    """Every batch makes the host wait for the device several times."""
    if not step.ring.is_loop or b"cuda" not in step.script.text.data or not any(step.loaders()):
        return
    waits = [
        event.call.node
        for event in step.events
        if event.call is not None and _waits(event.call) and not _is_sometimes(step, event)
    ]
    if len({node.lineno for node in waits}) >= _MANY:
        lines = sorted({node.lineno for node in waits})
        yield step.script.seen(
            waits[0], f"every batch waits for the device {len(lines)} times (lines {', '.join(map(str, lines))})"
        )


def _waits(call: Call) -> bool:
    """.item() and its kin of a value that has a name: a NumPy array's .item() waits for nothing, but is rare here."""
    return call.tail in _WAITS and call.receiver is not None and not call.node.args
