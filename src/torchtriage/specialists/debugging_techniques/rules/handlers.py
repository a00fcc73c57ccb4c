"""What the source alone shows about errors that a training loop hides."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Scope, dotted
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.steps import TrainingStep

# What catches everything that a step may fail with; a more exact class is a decision.
_BROAD = frozenset({"builtins.Exception", "builtins.BaseException", "builtins.RuntimeError"})
_MEMORY = frozenset({"torch.OutOfMemoryError", "torch.cuda.OutOfMemoryError"})
_TELLING = frozenset(
    {"print", "exception", "error", "warning", "warn", "info", "debug", "log", "write", "critical", "append"}
)
_REASON = frozenset({"exception", "print_exc", "format_exc", "exc_info", "print_exception", "format_exception"})


@detector("source/failure-swallowed")
def failure_swallowed(step: TrainingStep) -> Iterator[Sighting]:
    """An except around the step drops the error without a word, and training goes on."""
    seen: set[int] = set()
    for backward in step.backwards if step.optimizing() else ():
        path, scope = backward.event.path, backward.call.scope
        inside = path[path.index(step.ring.block) :] if step.ring.block in path else ()
        for block in inside if step.ring.is_loop else ():
            if block.kind == "try" and isinstance(block.owner, ast.Try) and id(block) not in seen:
                seen.add(id(block))
                yield from _dropped(step.script, block.owner, scope, backward.call.node.lineno)
            elif block.kind == "with" and isinstance(block.owner, ast.With) and id(block) not in seen:
                seen.add(id(block))
                yield from _suppressed(step.script, block.owner, scope, backward.call.node.lineno)


def _suppressed(script: Script, owner: ast.With, scope: Scope, line: int) -> Iterator[Sighting]:
    for item in owner.items:
        made = item.context_expr
        if not isinstance(made, ast.Call) or script.names.resolve(made.func, scope) != "contextlib.suppress":
            continue
        if {script.names.resolve(each, scope) for each in made.args} & (_BROAD | _MEMORY):
            fact = f"any such error of the step in line {line} ends here unseen: the batch is dropped, be it one or all"
            yield script.seen(made, fact)


def _dropped(script: Script, owner: ast.Try, scope: Scope, line: int) -> Iterator[Sighting]:
    for handler in owner.handlers:
        caught = _caught(script, handler, scope)
        if caught & (_BROAD | _MEMORY) and not _tells(handler, memory=caught <= _MEMORY):
            what = "any error" if caught & _BROAD else "running out of memory"
            yield script.seen(
                handler,
                f"{what} of the step in line {line} ends here unseen: the batch is dropped, be it one or all of them",
            )


def _caught(script: Script, handler: ast.ExceptHandler, scope: Scope) -> set[str]:
    if handler.type is None:
        return {"builtins.BaseException"}
    types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return {script.names.resolve(each, scope) for each in types}


def _tells(handler: ast.ExceptHandler, *, memory: bool) -> bool:
    """Whether the handler lets anybody know: raises, ends the loop, uses the error, or (of a known one) says so."""
    for statement in handler.body:
        for node in ast.walk(statement):
            match node:
                case ast.Raise() | ast.Return() | ast.Break() | ast.AugAssign() | ast.Yield():
                    return True
                case ast.Name(id=name) if handler.name is not None and name == handler.name:
                    return True
                case ast.Call(func=called):
                    word = dotted(called).rpartition(".")[2]
                    if word in _REASON or (memory and word in _TELLING) or word in ("exit", "_exit", "abort"):
                        return True
                    if any(keyword.arg == "exc_info" for keyword in node.keywords):
                        return True
    return False
