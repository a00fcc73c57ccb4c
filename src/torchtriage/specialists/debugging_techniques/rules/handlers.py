"""What the source alone shows about errors that a training loop hides."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Block, Call, Scope, dotted
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.steps import training_steps
from torchtriage.examine.source.torch_api.symbols import symbols

# What catches everything that a step may fail with; a more exact class is a decision.
_BROAD = frozenset({"builtins.Exception", "builtins.BaseException", "builtins.RuntimeError"})
_MEMORY = symbols().memory_errors
_TELLING = frozenset(
    {"print", "exception", "error", "warning", "warn", "info", "debug", "log", "write", "critical", "append"}
)
_REASON = frozenset({"exception", "print_exc", "format_exc", "exc_info", "print_exception", "format_exception"})


_DEEP = 4


@detector("source/failure-swallowed")
def failure_swallowed(script: Script) -> Iterator[Sighting]:
    """An except around the step drops the error without a word, and training goes on."""
    if not any(script.calls("backward", "grad")) or not any(script.calls("step")):
        return
    seen: set[int] = set()
    for call in _trained(script):
        for block, scope in _guards(script, call, (), 0):
            if id(block.owner) in seen:
                continue
            seen.add(id(block.owner))
            if isinstance(block.owner, ast.Try):
                yield from _dropped(script, block.owner, scope, call.node.lineno)
            elif isinstance(block.owner, ast.With):
                yield from _suppressed(script, block.owner, scope, call.node.lineno)


def _trained(script: Script) -> Iterator[Call]:
    """The calls by which a model is trained: backward, and the step of an optimizer."""
    yield from (call for call in script.calls("step") if _is_step(script, call))
    yield from (each.call for step in training_steps(script) if step.optimizing() for each in step.backwards)


def _is_step(script: Script, call: Call) -> bool:
    return any(script.roles.plays(call.receiver, call.scope, role) for role in ("optimizer", "scaler"))


def _guards(
    script: Script, call: Call, inner: tuple[tuple[Block, Scope], ...], deep: int
) -> Iterator[tuple[Block, Scope]]:
    """The guarded blocks around CALL, and around the calls that lead there, which a loop goes round."""
    guards = list(inner)
    for block in reversed(call.path):
        if block.kind == "try" or (block.kind == "with" and isinstance(block.owner, ast.With)):
            guards.append((block, call.scope))
        elif block.kind == "loop":
            yield from guards
    for site in script.trace.sites(call.scope) if deep < _DEEP and call.scope.kind == "function" else ():
        yield from _guards(script, site, tuple(guards), deep + 1)


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
        if caught & (_BROAD | _MEMORY) and not _tells(handler, _way(handler), memory=caught <= _MEMORY):
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


def _way(handler: ast.ExceptHandler) -> list[ast.stmt]:
    """What runs for an error that no test of its text knows: if "out of memory" in str(error), and nothing else."""
    way: list[ast.stmt] = []
    for each in handler.body:
        way += each.orelse if isinstance(each, ast.If) and _asks_text(each.test, handler.name) else [each]
    return way


def _asks_text(test: ast.expr, name: str | None) -> bool:
    match test:
        case ast.Compare(left=ast.Constant(value=str()), ops=[ast.In()], comparators=[text]):
            return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(text))
    return False


def _tells(handler: ast.ExceptHandler, way: list[ast.stmt], *, memory: bool) -> bool:
    """Whether the handler lets anybody know: raises, ends the loop, uses the error, or (of a known one) says so."""
    for statement in way:
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
