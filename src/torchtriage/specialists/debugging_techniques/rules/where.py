"""What the source alone shows about gradients that torch.where does not keep out."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Call, Scope, dotted
from torchtriage.examine.source.flow import surely
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.torch_api.operators import names
from torchtriage.examine.source.torch_api.symbols import symbols
from torchtriage.specialists.debugging_techniques.rules.values import default, is_off

# Functions whose derivative is not finite where torch.where is to keep them from being used, by what they are called.
_STEEP = names(trait="pole0") | names(trait="pole1")


# What a value comes from that does not reach the edge, what is no result of a model, and what trains nothing.
_KEPT_AWAY = symbols().guards
_TARGETS = frozenset({"y", "target", "targets", "label", "labels", "gt", "mask"})
_PREPARING = (
    "__getitem__",
    "load",
    "read",
    "collate",
    "preprocess",
    "prepare",
    "eval",
    "valid",
    "plot",
    "metric",
    "test",
)
_COMPARES: dict[str, type[ast.cmpop]] = {
    "gt": ast.Gt,
    "ge": ast.GtE,
    "lt": ast.Lt,
    "le": ast.LtE,
    "eq": ast.Eq,
    "ne": ast.NotEq,
    "greater": ast.Gt,
    "less": ast.Lt,
}
_COMPARING = frozenset(f"torch.{name}" for name in _COMPARES)
_SWAPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Gt: ast.Lt,
    ast.GtE: ast.LtE,
    ast.Lt: ast.Gt,
    ast.LtE: ast.GtE,
}
_SIGNS: dict[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_AT_ZERO = names(trait="pole0")
# A test against a number farther than this from the edge is about something else.
_NEAR_EDGE = 0.05

_EDGE = dict.fromkeys(names(trait="pole1") - _AT_ZERO, 1)  # of all others it is 0


@detector("source/nan-gradient-where")
def nan_gradient_where(script: Script) -> Iterator[Sighting]:
    """torch.where hides a value that is not finite, and its gradient is NaN all the same."""
    for call in script.calls("where"):
        arguments = _arguments(script, call)
        if len(arguments) != 3 or is_off(script, call.path, call.scope) or _is_data(script, call.scope):
            continue
        test, *branches = arguments
        guards = _guards(script, test, call)
        for branch, passed_over in zip(branches, (False, True), strict=True):
            kept = {(name, edge) for name, edge, holds in guards if holds is passed_over}
            steep = _steep(script, branch, kept, call) if kept else None
            if steep is not None:
                yield script.seen(
                    steep,
                    f"where {script.source(test)} passes over it, the derivative of {script.source(steep)} is infinite "
                    "or NaN, and times the zero that torch.where sends back it is NaN",
                )


def _arguments(script: Script, call: Call) -> list[ast.expr]:
    """The test and the two branches: torch.where(test, one, other), one.where(test, other)."""
    if script.name(call) == "torch.where":
        return call.node.args
    is_method = call.receiver is not None and not script.name(call) and len(call.node.args) == 2
    return [call.node.args[0], call.receiver, call.node.args[1]] if is_method and call.receiver is not None else []


def _guards(script: Script, test: ast.expr, call: Call) -> set[tuple[str, int, bool]]:
    """What TEST compares with a number near an edge, as text; the edge; whether the test holds there."""
    match _compared(script, test, call):
        case ast.Compare(left=left, ops=[sign], comparators=[right]):
            one, other = _bare(left), _bare(right)
            found = _at_edges(one, type(sign), _number(right, call))
            found |= _at_edges(other, _SWAPPED.get(type(sign), type(sign)), _number(left, call))
            return found if all(_may_be_at_edge(side, call) for side in (one, other)) else set()
        case ast.BinOp(left=left, op=ast.BitAnd() | ast.BitOr() as both, right=right):
            found = _guards(script, left, call) | _guards(script, right, call)
            return {each for each in found if each[2] is isinstance(both, ast.BitOr)}
        case ast.UnaryOp(op=ast.Invert(), operand=inner):
            return {(name, edge, not holds) for name, edge, holds in _guards(script, inner, call)}
    return set()


def _at_edges(side: ast.expr, sign: type[ast.cmpop], number: float | None) -> set[tuple[str, int, bool]]:
    if number is None or sign not in _SIGNS or not _is_variable(side):
        return set()
    return {(ast.dump(side), edge, _SIGNS[sign](edge, number)) for edge in (0, 1) if abs(number - edge) <= _NEAR_EDGE}


def _compared(script: Script, test: ast.expr, call: Call) -> ast.expr:
    """The comparison that TEST is, through the name it was given, a method, or a function of torch."""
    if isinstance(test, ast.Name):
        test = _value(test, call) or test
    match test:
        case ast.Call(func=called, args=[side, other]) if script.names.resolve(called, call.scope) in _COMPARING:
            word = script.names.resolve(called, call.scope).rpartition(".")[2]
            return ast.Compare(left=side, ops=[_COMPARES[word]()], comparators=[other])
        case ast.Call(func=ast.Attribute(value=side, attr=attr), args=[other]) if attr in _COMPARES:
            return ast.Compare(left=side, ops=[_COMPARES[attr]()], comparators=[other])
    return test


def _may_be_at_edge(side: ast.expr, call: Call) -> bool:
    """Whether nothing shows that SIDE was kept from the edge before, or that it gets no gradient: a target."""
    root = side
    while isinstance(root, ast.Subscript | ast.Attribute):
        root = root.value
    name = root.id if isinstance(root, ast.Name) else ""
    if name in _TARGETS:
        return False
    given = [store.value for store in call.scope.stores.get(dotted(side), ()) if store.how == "assign"]
    return not any(
        isinstance(inner, ast.Call) and getattr(inner.func, "attr", "") in _KEPT_AWAY
        for value in given
        if value is not None
        for inner in ast.walk(value)
    )


def _is_data(script: Script, scope: Scope) -> bool:
    """Whether SCOPE prepares data or measures: nothing there is trained."""
    bases = script.trace.bases(scope.host) if scope.host is not None else set()
    return scope.name.startswith(_PREPARING) or any(base.startswith("torch.utils.data.") for base in bases)


def _bare(node: ast.expr) -> ast.expr:
    """What x.abs() is taken of: what is not finite at the edge of one is so at that of the other."""
    match node:
        case ast.Call(func=ast.Attribute(value=inner, attr="abs"), args=[], keywords=[]):
            return inner
    return node


def _value(name: ast.Name, call: Call) -> ast.expr | None:
    """What NAME was given, when that happens once in the function and nothing of it is changed afterwards."""
    stores = call.scope.stores.get(name.id, [])
    if len(stores) != 1 or f"{name.id}[]" in call.scope.stores:
        return None
    store = stores[0]
    sure = store.how == "assign" and store.index is None and surely(store, call)
    mentioned = {each.id for each in ast.walk(store.value) if isinstance(each, ast.Name)} if store.value else set()
    again = (each for word in mentioned for each in call.scope.stores.get(word, ()) if each.order > store.order)
    return store.value if sure and not any(again) and not isinstance(store.value, ast.Name) else None


def _number(node: ast.expr, call: Call) -> float | None:
    """The number that is written there, or that is the default of a parameter."""
    match node:
        case ast.Constant(value=int() | float() as number):
            return float(number)
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            below = _number(inner, call)
            return None if below is None else -below
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as sign, right=right):
            one, other = _number(left, call), _number(right, call)
            return None if one is None or other is None else one + (other if isinstance(sign, ast.Add) else -other)
        case ast.Name(id=name) if [store.how for store in call.scope.stores.get(name, ())] == ["parameter"]:
            given = default(call.scope, name)
            return _number(given, call) if isinstance(given, ast.Constant) else None
    return None


def _is_variable(node: ast.expr) -> bool:
    while isinstance(node, ast.Subscript):
        node = node.value
    return isinstance(node, ast.Name | ast.Attribute)


def _steep(script: Script, branch: ast.expr, kept: set[tuple[str, int]], call: Call) -> ast.expr | None:
    """The operation of BRANCH that is not finite for the values that the test was to keep out."""
    if isinstance(branch, ast.Name):
        given = _value(branch, call)
        return _steep(script, given, kept, call) if given is not None else None
    for node in ast.walk(branch):
        match node:
            case ast.Call(func=ast.Attribute(value=value, attr=attr)) if attr in _STEEP:
                inside = node.args[:1] if script.names.resolve(node.func, call.scope).startswith("torch.") else [value]
                if any((_text(each), _EDGE.get(attr, 0)) in kept for each in (*inside, *_vanishing(inside, attr))):
                    return node
            case ast.BinOp(op=ast.Div(), right=below) if (_text(below), 0) in kept:
                return node
            case ast.BinOp(left=base, op=ast.Pow(), right=power) if (ast.dump(base), 0) in kept and _is_steep(power):
                return node
    return None


def _text(node: ast.expr) -> str:
    return ast.dump(_bare(node))


def _vanishing(inside: list[ast.expr], attr: str) -> Iterator[ast.expr]:
    """What makes the argument of a logarithm or a root zero with itself: p in p * q and in p / q."""
    for each in inside if attr in _AT_ZERO else ():
        match each:
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                yield from (left, right)
            case ast.BinOp(left=left, op=ast.Div()):
                yield left


def _is_steep(power: ast.expr) -> bool:
    """Whether the power's derivative is not finite at 0: below 1, and not 0."""
    match power:
        case ast.Constant(value=float(number)):
            return 0 < number < 1
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float())):
            return True
    return False
