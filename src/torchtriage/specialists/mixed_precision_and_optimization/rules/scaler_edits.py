"""Edits that put calls of a GradScaler where they belong."""

from __future__ import annotations

import ast

from torchtriage.core.evidence import Edit
from torchtriage.examine.source.script import Script


def unscale_first(script: Script, clip: ast.AST) -> tuple[Edit, ...]:
    """scaler.unscale_(optimizer) above CLIP: where the loss is scaled ahead of it, and one step by that scaler stands
    behind it, in the same block.
    """
    block, place = _block(script, clip)
    scalers = [scaler for each in block[:place] if (scaler := _scaler(each))]
    steps = [each.value for each in block[place:] if isinstance(each, ast.Expr) and _calls(each, "step")]
    stepped = [each for each in steps if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute)]
    if len(scalers) != 1 or len(stepped) != 1 or not stepped[0].args:
        return ()
    optimizer = ast.unparse(stepped[0].args[0])
    if ast.unparse(stepped[0].func).rpartition(".")[0] != scalers[0]:
        return ()
    return script.insertion("unscale-first", block[place], f"{scalers[0]}.unscale_({optimizer})")


def step_through_scaler(script: Script, step: ast.AST) -> tuple[Edit, ...]:
    """scaler.step(optimizer) for optimizer.step(): where the loss is scaled ahead of it, and update() follows, in the
    same block.
    """
    block, place = _block(script, step)
    scalers = [scaler for each in block[:place] if (scaler := _scaler(each))]
    is_plain = isinstance(step, ast.Call) and not step.args and not step.keywords and step.lineno == step.end_lineno
    if not is_plain or not isinstance(step, ast.Call) or not scalers:
        return ()
    if not any(ast.unparse(each) == f"{scalers[-1]}.update()" for each in block[place:]):
        return ()
    optimizer = ast.unparse(step.func).rpartition(".")[0]
    return script.replaced("step-through-the-scaler", step, f"{scalers[-1]}.step({optimizer})")


def _block(script: Script, node: ast.AST) -> tuple[list[ast.stmt], int]:
    """The block in which the statement of NODE stands, and its place there."""
    for owner in ast.walk(script.tree):
        for name in ("body", "orelse", "finalbody"):
            found = getattr(owner, name, None)
            block: list[ast.stmt] = found if isinstance(found, list) else []
            for place, each in enumerate(block):
                if isinstance(each, ast.Expr | ast.Assign) and each.value is node:
                    return block, place
    return [], 0


def _scaler(statement: ast.stmt) -> str:
    """The scaler of scaler.scale(loss).backward(); "" for other statements."""
    match statement:
        case ast.Expr(
            value=ast.Call(
                func=ast.Attribute(value=ast.Call(func=ast.Attribute(value=scaler, attr="scale")), attr="backward")
            )
        ):
            return ast.unparse(scaler)
    return ""


def _calls(statement: ast.Expr, method: str) -> bool:
    called = statement.value.func if isinstance(statement.value, ast.Call) else None
    return isinstance(called, ast.Attribute) and called.attr == method
