"""Statements that put a value into something: append, +=, container[key] = value."""

from __future__ import annotations

import ast

from msgspec import Struct

from torchtriage.examine.source.events import Event
from torchtriage.examine.source.facts import Call, Store, dotted

_PUTS = frozenset({"append", "appendleft", "insert", "extend"})


class Put(Struct, frozen=True):
    """VALUE goes into CONTAINER at NODE; is_sum: it is added to what is there."""

    node: ast.AST
    fact: Call | Store
    container: ast.expr
    value: ast.expr
    is_sum: bool


def put_in(event: Event) -> Put | None:
    """What EVENT puts where; None when it puts nothing anywhere."""
    fact = event.fact
    if isinstance(fact, Call):
        if fact.tail in _PUTS and fact.receiver is not None and fact.node.args:
            return Put(fact.node, fact, fact.receiver, fact.node.args[-1], is_sum=False)
        return None
    match fact.node:
        case ast.AugAssign(op=ast.Add(), target=target, value=value):
            return Put(fact.node, fact, target, value, is_sum=True)
        case ast.Assign(targets=[ast.Subscript() as target], value=ast.BinOp(op=ast.Add(), left=left, right=right)) if (
            _is_place(left, target) or _is_place(right, target)
        ):
            new = right if _is_place(left, target) else left
            return Put(fact.node, fact, target, new, is_sum=True)
        case ast.Assign(targets=[target], value=ast.BinOp(op=ast.Add(), left=left, right=right)):
            sides = [(left, right), (right, left)] if dotted(target) else []
            for old, new in sides:
                if _holds(old, dotted(target)):
                    return Put(fact.node, fact, target, new, is_sum=True)
        case ast.Assign(targets=[ast.Name(id=name) as target], value=ast.IfExp(body=one, orelse=other)):
            for each in (one, other):  # smooth = loss if smooth is None else 0.9 * smooth + 0.1 * loss
                if isinstance(each, ast.BinOp) and isinstance(each.op, ast.Add):
                    for old, new in ((each.left, each.right), (each.right, each.left)):
                        if _holds(old, name):
                            return Put(fact.node, fact, target, new, is_sum=True)
            return None
        case ast.Assign(targets=[ast.Subscript(slice=key) as target], value=value) if not isinstance(key, ast.Constant):
            return Put(fact.node, fact, target, value, is_sum=False)
    return None


def _is_place(node: ast.expr, target: ast.Subscript) -> bool:
    """Whether NODE reads what TARGET writes: sums[name], sums.get(name, 0.0)."""
    match node:
        case ast.Subscript(value=of, slice=key) | ast.Call(func=ast.Attribute(value=of, attr="get"), args=[key, *_]):
            own = dotted(of) and dotted(of) == dotted(target.value)
            return bool(own) and ast.dump(key) == ast.dump(target.slice)
    return False


def _holds(node: ast.expr, name: str) -> bool:
    """Whether NODE is NAME, or NAME times a number: 0.9 * total."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return dotted(node.left) == name or dotted(node.right) == name
    return dotted(node) == name


def inner(node: ast.expr) -> ast.expr:
    """The variable behind a container: history["loss"] → history, history.setdefault("loss", []) → history."""
    while True:
        match node:
            case ast.Subscript(value=value) | ast.Call(func=ast.Attribute(value=value, attr="setdefault")):
                node = value
            case _:
                return node
