"""What the source alone shows about where graphs are recorded, and about defaults of parameters."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.source.facts import Block, Scope
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.torch_api.symbols import symbols

_OFF = symbols().grad_free


def is_off(script: Script, path: tuple[Block, ...], scope: Scope) -> bool:
    """Whether no graph is recorded there: under no_grad or inference_mode, or in a function decorated with them."""
    return any(_is_off(script, each, scope) for each in _entered(path)) or any(
        _is_off(script, each, scope)
        for each in (scope.node.decorator_list if isinstance(scope.node, ast.FunctionDef) else ())
    )


def _entered(path: tuple[Block, ...]) -> Iterator[ast.expr]:
    for block in path:
        if block.kind == "with" and isinstance(block.owner, ast.With):
            yield from (item.context_expr for item in block.owner.items)


def _is_off(script: Script, node: ast.expr, scope: Scope) -> bool:
    called = node.func if isinstance(node, ast.Call) else node
    name = script.names.resolve(called, scope)
    if name == "torch.set_grad_enabled" and isinstance(node, ast.Call):
        return bool(node.args) and isinstance(node.args[0], ast.Constant) and node.args[0].value is False
    return name in _OFF and not (isinstance(node, ast.Call) and (node.args or node.keywords))


def default(scope: Scope, name: str) -> ast.expr | None:
    """The default of the parameter NAME."""
    if not isinstance(scope.node, ast.FunctionDef | ast.AsyncFunctionDef):
        return None
    notes = scope.node.args
    named = [*notes.posonlyargs, *notes.args]
    pairs = [
        *zip(reversed(named), reversed(notes.defaults), strict=False),
        *zip(notes.kwonlyargs, notes.kw_defaults, strict=True),
    ]
    return next((default for each, default in pairs if each.arg == name), None)
