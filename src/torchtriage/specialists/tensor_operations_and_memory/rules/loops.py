"""What the source alone shows about work that a loop repeats for nothing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from torchtriage.core.evidence import Edit
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Block, Call, Scope
from torchtriage.examine.source.flow import loops
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.steps import training_steps
from torchtriage.examine.source.tensors import is_batches
from torchtriage.examine.source.torch_api.symbols import symbols

# Methods that a framework calls once for every batch.
_EVERY_BATCH = re.compile(
    r"(?:training|validation|train|test)_step"
    r"|(?:on_)?(?:after|before|post|pre)_(?:\w+_)?(?:batch|step|iter|iteration|backward)"
    r"|on_(?:\w+_)?(?:batch|step|iter|iteration|backward)(?:_end|_start|_begin)?|(?:batch|step|iter)_(?:end|start|begin)"
)
_DEVICES = ("cuda", "mps", "xpu", "gpu", "accelerator")


@detector("source/empty-cache-in-loop")
def empty_cache_in_loop(script: Script) -> Iterator[Sighting]:
    """The allocator's cache is given back to the driver after every batch."""
    for call in script.named(*symbols().cache_emptying):
        line = _every_batch(script, call)
        if line:
            yield script.seen(
                call.node,
                f"{call.tail}() runs for every batch of line {line}: it waits for the device, gives its free blocks "
                "back to the driver, and the next batch has to ask for them again",
                _removal(script, call),
            )


def _every_batch(script: Script, call: Call) -> int:
    """The line of the loop (or of the method of a framework) that runs CALL once for each batch; else 0."""
    for step in training_steps(script):
        owner = step.ring.block.owner
        if _is_epochs(owner) or any(step.calls("generate")) or not (step.ring.is_loop or _is_step(step.ring.scope)):
            continue
        turning = {id(block) for each in step.backwards for block in loops(each.event.path)[:1]}
        for event, each in step.calls(call.tail):
            inside = event.path[event.path.index(step.ring.block) + 1 :]
            around = loops(event.path)
            always = _is_always(script, inside) and _is_every_turn(call, owner)
            if each is call and {id(b) for b in around[:1]} <= turning and always:
                return int(getattr(owner, "lineno", 0))
    return _in_its_own_loop(script, call)


def _in_its_own_loop(script: Script, call: Call) -> int:
    around = loops(call.path)
    for block in around:
        inside, owner = call.path[call.path.index(block) + 1 :], block.owner
        if not isinstance(owner, ast.For) or not is_batches(script, owner.iter, call.scope):
            continue
        if _has_model(script, call, block):
            return owner.lineno if _is_always(script, inside) and _is_every_turn(call, owner) else 0
    if not around and call.scope.host is not None and _EVERY_BATCH.fullmatch(call.scope.name):
        return getattr(call.scope.node, "lineno", 0) if _is_always(script, call.path[1:]) else 0
    return 0


def _is_step(scope: Scope) -> bool:
    """Whether a function is called for every batch, by its name: train_step, training_batch."""
    return scope.kind == "function" and any(word in scope.name.lower() for word in ("step", "batch", "iter"))


def _is_epochs(owner: ast.AST) -> bool:
    return isinstance(owner, ast.For) and "epoch" in ast.unparse(owner.target).lower()


def _is_every_turn(call: Call, owner: ast.AST) -> bool:
    """Whether the loop of OWNER neither ends in its first turn, nor goes on before CALL in all turns but every n-th."""
    body: list[ast.stmt] = getattr(owner, "body", [])
    if any(isinstance(each, ast.Break | ast.Return) for each in body) and isinstance(owner, ast.For | ast.While):
        return False
    tests = (each for each in body if isinstance(each, ast.If) and each.lineno < call.node.lineno)
    return not any(
        isinstance(each.body[-1], ast.Continue) and any(isinstance(node, ast.Mod) for node in ast.walk(each.test))
        for each in tests
    )


def _is_always(script: Script, inside: Sequence[Block]) -> bool:
    """Whether nothing but the kind of device decides: neither every n-th batch, nor after an error."""
    for block in inside:
        if block.kind == "handler":
            return False
        if block.kind == "arm" and not (isinstance(block.owner, ast.If) and _asks_device(script, block.owner.test)):
            return False
    return True


def _asks_device(script: Script, test: ast.expr) -> bool:
    if isinstance(test, ast.BoolOp) or any(isinstance(node, ast.Mod) for node in ast.walk(test)):
        return False
    text = script.source(test).lower()
    return any(word in text for word in _DEVICES) and "memory" not in text and "empty" not in text


def _has_model(script: Script, call: Call, block: Block) -> bool:
    """Whether the loop of BLOCK runs a model, and generates no text: that leaves caches of its own behind."""
    inside = [each for each in call.scope.calls if block in each.path]
    if any(each.tail == "generate" for each in inside):
        return False
    return any(script.roles.plays(each.node.func, each.scope, "model") for each in inside)


def _removal(script: Script, call: Call) -> tuple[Edit, ...]:
    """Takes out the whole line, where other statements stand beside it."""
    statement = call.statement
    alone = not isinstance(statement, ast.Expr) or statement.value is not call.node
    siblings = [value for _, value in ast.iter_fields(call.block.owner) if isinstance(value, list)]
    if alone or not any(statement in value and len(value) > 1 for value in siblings):
        return ()
    raw = script.text.raw(statement.lineno)
    if statement.lineno != statement.end_lineno or raw.strip() != script.source(statement).encode():
        return ()
    return script.line_removed("drop-the-call", statement.lineno)
