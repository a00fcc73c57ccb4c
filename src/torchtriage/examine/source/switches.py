"""Flags that choose whether an operation works in place: def scale(x, inplace=False)."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import TypeAlias

from torchtriage.examine.source.facts import Action, Call, Scope, dotted
from torchtriage.examine.source.names import table
from torchtriage.examine.source.script import Script

# Parameter → its value in the calls that are looked at; None where that is not known.
Flags: TypeAlias = Mapping[str, bool | None]


def is_in_place(script: Script, call: Call) -> bool:
    """Whether CALL passes inplace=True to a function or layer of torch: F.relu(x, True), nn.ReLU(inplace=True)(x)."""
    node = call.node.func if isinstance(call.node.func, ast.Call) else call.node
    places: dict[str, int] = table()["inplace"]
    place = places.get(script.names.resolve(node.func, call.scope))
    if place is None or any(isinstance(each, ast.Starred) for each in node.args):
        return False
    named = next((each.value for each in node.keywords if each.arg == "inplace"), None)
    return _truth(named or (node.args[place] if place < len(node.args) else None)) is True


def defaults(scope: Scope) -> dict[str, bool | None]:
    """The parameters of SCOPE that are True or False where no call says otherwise."""
    arguments = getattr(scope.node, "args", None)
    if not isinstance(arguments, ast.arguments):
        return {}
    words = [each.arg for each in (*arguments.posonlyargs, *arguments.args)]
    given = dict(zip(words[len(words) - len(arguments.defaults) :], arguments.defaults, strict=True))
    given |= {each.arg: value for each, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if value}
    return {word: _truth(value) for word, value in given.items()}


def given_flags(helper: Scope, call: Call, words: list[str]) -> dict[str, bool | None]:
    """What CALL gives each parameter of HELPER. WORDS: the names of those that it fills by position."""
    known = defaults(helper)
    open_ended = any(isinstance(each, ast.Starred) for each in call.node.args)
    open_ended |= any(each.arg is None for each in call.node.keywords)
    flags: dict[str, bool | None] = {}
    for each in helper.parameters:
        value = call.argument(each.arg, words.index(each.arg) if each.arg in words else None)
        unsaid = known.get(each.arg) if value is None and not open_ended else None
        flags[each.arg] = unsaid if value is None else _truth(value)
    return flags


def applied_flags(script: Script, function: Scope, forward: Scope, inputs: list[str]) -> dict[str, bool | None]:
    """What the calls of FUNCTION.apply in this file give INPUTS: True where one gives True, else the defaults."""
    calls = [call for call in script.calls("apply") if dotted(call.receiver) == function.name]
    every = [given_flags(forward, call, inputs) for call in calls]
    known = defaults(forward)
    return {word: True if any(each[word] for each in every) else known.get(word) or None for word in inputs}


def is_switched_off(scope: Scope, action: Action, flags: Flags) -> bool:
    """Whether ACTION of SCOPE runs only where one of FLAGS has a value that it is not known to have."""
    tests = [
        (block.owner.test, _is_within(block.owner.body, action))
        for block in action.path
        if block.kind == "arm" and isinstance(block.owner, ast.If)
    ]
    statement = action.statement if isinstance(action, Call) else action.node
    for node in ast.walk(statement):
        if isinstance(node, ast.IfExp) and any(each is action.node for each in ast.walk(node)):
            inside = (_is_inside(action.node, part) for part in (node.body, node.orelse))
            tests += [(node.test, wanted) for wanted, is_here in zip((True, False), inside, strict=True) if is_here]
    tests += [(test, False) for test in _left_before(scope, action)]
    return any(not _may_be(test, wanted, scope, flags) for test, wanted in tests)


def _left_before(scope: Scope, action: Action) -> list[ast.expr]:
    """The tests that leave SCOPE above ACTION: if not inplace: return x * 2."""
    line = getattr(action.node, "lineno", 0)
    return [
        each.test
        for each in getattr(scope.node, "body", ())
        if isinstance(each, ast.If) and (each.end_lineno or 0) < line and isinstance(each.body[-1], ast.Return)
    ]


def _may_be(test: ast.expr, wanted: bool, scope: Scope, flags: Flags) -> bool:
    """Whether TEST may be WANTED: False only where that depends on a flag of another value, or of an unknown one."""
    match test:
        case ast.Name(id=name) if name in flags:
            alone = all(store.how == "parameter" for store in scope.stores.get(name, ()))
            return alone and flags[name] is wanted
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return _may_be(inner, not wanted, scope, flags)
        case ast.BoolOp(op=ast.And(), values=parts) if wanted:
            return all(_may_be(each, True, scope, flags) for each in parts)
        case ast.BoolOp(op=ast.Or(), values=parts) if not wanted:
            return all(_may_be(each, False, scope, flags) for each in parts)
    return True


def _is_within(body: list[ast.stmt], action: Action) -> bool:
    line = getattr(action.node, "lineno", 0)
    return body[0].lineno <= line <= (body[-1].end_lineno or 0)


def _is_inside(node: ast.AST, whole: ast.expr) -> bool:
    return any(each is node for each in ast.walk(whole))


def _truth(node: ast.expr | None) -> bool | None:
    return bool(node.value) if isinstance(node, ast.Constant) and isinstance(node.value, int) else None
