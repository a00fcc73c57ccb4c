"""Which thing a value is, and what happens to it first: the same model, optimizer or loader under other names."""

from __future__ import annotations

import ast
from typing import NamedTuple

from torchtriage.examine.source.facts import Call, Scope
from torchtriage.examine.source.flow import reaches
from torchtriage.examine.source.ranks import ways
from torchtriage.examine.source.script import Script

_DEEP = 4


def things(script: Script, node: ast.expr | None, scope: Scope) -> set[int]:
    """What NODE may be, told by what made it; two values with a common one may be the same thing."""
    found = set()
    for origin in script.trace.origins(node, scope):
        if origin.is_parameter:
            found.add(id(origin.store))
        elif origin.call is not None:
            found.add(id(origin.call))
        elif origin.store is not None:
            found.add(id(origin.store))
    return found


def is_of(script: Script, node: ast.expr | None, scope: Scope, made: ast.expr) -> bool:
    """Whether NODE may be what MADE gave."""
    return any(origin.node is made for origin in script.trace.origins(node, scope))


def holds(script: Script, node: ast.expr | None, scope: Scope, inner: ast.AST, deep: int = 0) -> bool:
    """Whether the expression INNER is a part of NODE, or of what its names and helper functions stand for."""
    for each in ast.walk(node) if node is not None and deep < _DEEP else ():
        if each is inner:
            return True
        values: list[tuple[ast.expr | None, Scope]] = []
        if isinstance(each, ast.Name):
            values = [(s.value, s.scope) for s in script.names.stores(each.id, scope) if s.how == "assign"]
        elif isinstance(each, ast.Call) and (own := script.trace.definition(each.func, scope)) is not None:
            values = [(end.node.value, own) for end in own.returns]
        if any(holds(script, value, home, inner, deep + 1) for value, home in values):
            return True
    return False


class Meeting(NamedTuple):
    """Two calls of one function that lead to two things; in_order: whether FIRST comes before THEN there."""

    in_order: bool
    first: Call
    then: Call


def meetings(script: Script, first: Call, then: Call) -> list[Meeting]:
    """How the ways to two calls meet in the functions of this file; an object is made before its methods run."""
    found = (_meeting(there, here) for there in ways(script, then) for here in ways(script, first))
    return [each for each in found if each is not None]


def comes_after(script: Script, then: Call, first: Call) -> bool:
    """Whether THEN runs after FIRST wherever one function leads to both."""
    met = meetings(script, first, then)
    return bool(met) and all(each.in_order for each in met)


def _meeting(there: tuple[Call, ...], here: tuple[Call, ...]) -> Meeting | None:
    for earlier in here:
        for later in there:
            if later is earlier:
                return None
            if later.scope is earlier.scope:
                return Meeting(reaches(earlier, later), earlier, later)
    made = next((each for each in here if each.scope.name == "__init__"), None)
    used = next((each for each in there if each.scope.host is not None), None)
    if made is not None and used is not None and made.scope.host is used.scope.host and used.scope.name != "__init__":
        return Meeting(True, made, used)
    return None
