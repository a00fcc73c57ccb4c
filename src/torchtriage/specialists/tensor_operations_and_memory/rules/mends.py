"""Edits that put right what executions show about tensors and graphs."""

from __future__ import annotations

import ast
import re

from torchtriage.core.evidence import Edit
from torchtriage.examine.source.script import Script

_NAMED = re.compile(r"_*(?:eval|evaluate|evaluation|val|valid|validate|validation|test|predict|inference)(?:_|\d|$)")
"""What functions that only evaluate are called."""
_GRADIENTS = frozenset({"backward", "grad", "enable_grad", "requires_grad_", "requires_grad"})


def names_evaluation(name: str) -> bool:
    """Whether NAME is that of a function that only evaluates."""
    return _NAMED.match(name) is not None


def decorate_with_no_grad(script: Script, node: ast.AST) -> tuple[Edit, ...]:
    """@torch.no_grad() above a function that only evaluates, by its name and by what it does."""
    function = _function(script, node)
    if function is None or function.decorator_list or not names_evaluation(function.name):
        return ()
    is_known = script.names.resolve(ast.Name("torch", ast.Load()), script.facts.scopes[0]) == "torch"
    wants = any(isinstance(each, ast.Attribute) and each.attr in _GRADIENTS for each in ast.walk(function))
    return () if wants or not is_known else script.line_above("no-grad", function.lineno, "@torch.no_grad()")


def _function(script: Script, node: ast.AST) -> ast.FunctionDef | None:
    """The innermost function that NODE stands in."""
    around = (
        each
        for each in reversed(script.definitions_around(getattr(node, "lineno", 0)))
        if isinstance(each, ast.FunctionDef)
    )
    return next(around, None)


def take_result(script: Script, node: ast.AST) -> tuple[Edit, ...]:
    """`x.to(device)` becomes `x = x.to(device)`, where x is the function's own, and no leaf that is learned."""
    called = node.func if isinstance(node, ast.Call) else None
    first = next(iter(node.args), None) if isinstance(node, ast.Call) else None
    receiver = called.value if isinstance(called, ast.Attribute) else None
    is_of_torch = receiver is not None and script.names.resolve(called, script.facts.scopes[0]).startswith("torch.")
    operand = first if is_of_torch else receiver
    function = _function(script, node)
    if not isinstance(operand, ast.Name) or function is None or not _is_own(function, operand.id):
        return ()
    statement = next((each for each in ast.walk(function) if isinstance(each, ast.Expr) and each.value is node), None)
    if statement is None or any("grad" in script.source(value) for value in _given(function, operand.id)):
        return ()
    start, _ = script.text.span(statement)
    return script.change("take-the-result", start, start, f"{operand.id} = ")


def _is_own(function: ast.FunctionDef, name: str) -> bool:
    """Whether NAME is a name of FUNCTION itself."""
    wanted = function.args
    if name in (each.arg for each in (*wanted.posonlyargs, *wanted.args, *wanted.kwonlyargs)):
        return True
    outside = (each for each in ast.walk(function) if isinstance(each, ast.Global | ast.Nonlocal))
    stored = (each for each in ast.walk(function) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store))
    return any(each.id == name for each in stored) and not any(name in each.names for each in outside)


def _given(function: ast.FunctionDef, name: str) -> list[ast.expr]:
    """What NAME is assigned in FUNCTION."""
    assigned = (each for each in ast.walk(function) if isinstance(each, ast.Assign))
    return [
        each.value
        for each in assigned
        if any(isinstance(target, ast.Name) and target.id == name for target in each.targets)
    ]
