"""Places where state_dict is named without being called, and where only the state makes sense."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchtriage.examine.source.facts import Scope, dotted
from torchtriage.examine.source.script import Script

# Calls whose arguments are data, and keys under which methods are kept on purpose.
_TAKES_DATA = re.compile(r"save|dump|deepcopy|load_state_dict|write|upload|broadcast|^append$")
_METHODS = re.compile(r"fn|func|callback|getter|hook|method|call")
_OF_A_STATE = frozenset({"items", "keys", "values", "copy", "update", "get", "pop"})


def uncalled(script: Script) -> Iterator[tuple[ast.expr, Scope]]:
    """Every X.state_dict without parentheses that stands where a state belongs, and its scope."""
    if "state_dict" not in script.aside:
        return
    named = _named(script)
    for node, scope in _roots(script) if named else ():
        for each in ast.walk(node):
            yield from ((part, scope) for part in _in_place(script, each) if id(part) in named)


def _named(script: Script) -> set[int]:
    called = {id(each.node.func) for each in script.calls("state_dict")}
    every = (node for scope in script.facts.scopes[:1] for node in ast.walk(scope.node))
    named = (node for node in every if isinstance(node, ast.Attribute) and node.attr == "state_dict")
    return {id(node) for node in named if id(node) not in called and isinstance(node.ctx, ast.Load)}


def _roots(script: Script) -> Iterator[tuple[ast.expr, Scope]]:
    for scope in script.facts.scopes:
        for stores in scope.stores.values():
            yield from ((store.value, scope) for store in stores if store.value is not None)
        yield from ((call.node, scope) for call in scope.calls)
        yield from ((each.node.value, scope) for each in scope.returns if each.node.value is not None)


def _in_place(script: Script, node: ast.AST) -> Iterator[ast.expr]:
    match node:
        case ast.Dict(keys=keys, values=values) if not _is_registry(script, values):
            yield from (v for k, v in zip(keys, values, strict=True) if not (k and _METHODS.search(ast.unparse(k))))
        case ast.DictComp(value=value) if not _is_registry(script, [value]):
            yield value
        case ast.Call(func=called, args=arguments, keywords=words):
            data = _TAKES_DATA.search(dotted(called).rpartition(".")[2])
            named = isinstance(called, ast.Name) and called.id == "dict"
            yield from arguments if data else ()
            yield from (each.value for each in words) if data or named else ()
        case ast.Attribute(value=value, attr=word) if word in _OF_A_STATE:
            yield value
        case ast.Subscript(value=value):
            yield value


def _is_registry(script: Script, values: list[ast.expr]) -> bool:
    """Whether a dictionary keeps methods to be called later: others stand beside it, or its entries are called."""
    methods = any(isinstance(each, ast.Attribute) and each.attr == "load_state_dict" for each in values)
    return methods or any(isinstance(call.node.func, ast.Subscript) for call in script.calls(""))
