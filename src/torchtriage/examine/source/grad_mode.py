"""Where autograd may be switched off: by a context manager, by a decorator, by every caller."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from torchtriage.examine.source.facts import Block, Call, Scope, dotted
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.torch_api.symbols import symbols

# Context managers that leave autograd as it is; any other may switch it off.
_HARMLESS = symbols().harmless_contexts
_DECORATORS = frozenset({"staticmethod", "classmethod"})
_DEEP = 4


def is_guarded(script: Script, call: Call, deep: int) -> bool:
    """Whether CALL runs under a context manager that may switch gradients off, here or at every caller."""
    if any(may_switch(block) for block in call.path) or is_decorated(call.scope):
        return True
    sites = _sites(script, call.scope) if call.scope.kind == "function" and deep < _DEEP else ()
    return bool(sites) and all(is_guarded(script, site, deep + 1) for site in sites)


def _sites(script: Script, scope: Scope) -> Iterable[Call]:
    """The calls of a function; where none is sure, those of anything of that name: model.module.evaluate(…)."""
    return script.trace.sites(scope) or [call for call in script.calls(scope.name) if call.scope is not scope]


def may_switch(block: Block) -> bool:
    """Whether BLOCK stands under a context manager that switches gradients off, or that is not known."""
    if block.kind != "with" or not isinstance(block.owner, ast.With | ast.AsyncWith):
        return False
    for item in block.owner.items:
        context = item.context_expr
        called = dotted(context.func) if isinstance(context, ast.Call) else ""
        if called.rpartition(".")[2] not in _HARMLESS:
            return True
    return False


def is_decorated(scope: Scope) -> bool:
    """By no_grad, or by something that is not known."""
    inside: Scope | None = scope
    while inside is not None:
        node = inside.node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            kept = _DECORATORS | ({"dataclass"} if isinstance(node, ast.ClassDef) else set())
            if any(dotted(each).rpartition(".")[2] not in kept for each in node.decorator_list):
                return True
        inside = inside.parent
    return False
