"""Handlers of errors, and whether anybody learns of an error that they take."""

from __future__ import annotations

import ast
from collections.abc import Set

from torchtriage.examine.source.torch_api.symbols import symbols

BROAD = frozenset({"builtins.Exception", "builtins.BaseException", "builtins.RuntimeError"})
"""Classes of what goes wrong in a training step, whatever it is; a more exact class is a decision."""
_REPORTS = frozenset({"print", "exception", "error", "warning", "warn", "info", "debug", "log", "write", "critical"})
_TRACEBACKS = frozenset({"exception", "print_exc", "format_exc", "exc_info", "print_exception", "format_exception"})
_EXITS = frozenset({"exit", "_exit", "abort"})


def hides_errors(handler: ast.ExceptHandler, caught: Set[str]) -> bool:
    """Whether HANDLER, for errors of the classes CAUGHT, drops whatever goes wrong in a step, or its memory running
    out, and nobody learns of it.
    """
    memory = symbols().memory_errors
    return bool(caught & (BROAD | memory)) and not _tells(handler, is_known=caught <= memory)


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


def _tells(handler: ast.ExceptHandler, *, is_known: bool) -> bool:
    """Whether HANDLER lets anybody know: raises, ends the loop, counts, uses the error, or (of a known one) says so."""
    nodes = [node for statement in _way(handler) for node in ast.walk(statement)]
    return any(_is_word(node, handler.name, is_known=is_known) for node in nodes)


def _is_word(node: ast.AST, name: str | None, *, is_known: bool) -> bool:
    match node:
        case ast.Return(value=None | ast.Constant(value=None)):
            return False
        case ast.Raise() | ast.Return() | ast.Break() | ast.AugAssign() | ast.Yield():
            return True
        case ast.Name(id=word):
            return name is not None and word == name
        case ast.Call(func=called, keywords=keywords):
            word = ast.unparse(called).rpartition(".")[2]
            is_report = word in _TRACEBACKS | _EXITS or (is_known and word in _REPORTS | {"append"})
            return is_report or any(each.arg == "exc_info" for each in keywords)
    return False
