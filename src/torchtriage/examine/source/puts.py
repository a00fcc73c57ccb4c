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
    return _summed(fact) or _keyed(fact)


def _summed(fact: Store) -> Put | None:
    """Of total += loss, sums[k] = sums.get(k, 0) + loss, s = loss if s is None else 0.9 * s + loss, l = [*l, loss]."""
    match fact.node:
        case ast.AugAssign(op=ast.Add(), target=target, value=value):
            return Put(fact.node, fact, target, value, is_sum=not isinstance(value, ast.List | ast.Tuple))
        case ast.Assign(targets=[target], value=value):
            parts = (value.body, value.orelse) if isinstance(value, ast.IfExp) else (value,)
            for part in parts:
                if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Add):
                    for old, new in ((part.left, part.right), (part.right, part.left)):
                        if _reads(old, target):
                            return Put(fact.node, fact, target, new, is_sum=not isinstance(new, ast.List | ast.Tuple))
                elif (added := _added(part, target)) is not None:
                    return Put(fact.node, fact, target, added, is_sum=not isinstance(part, ast.List))
    return None


def _added(node: ast.expr, target: ast.expr) -> ast.expr | None:
    """What comes to TARGET by total.add(loss), torch.add(total, loss), [*losses, loss]."""
    match node:
        case ast.Call(func=ast.Attribute(value=old, attr="add"), args=[new]) if _reads(old, target):
            return new
        case ast.Call(func=ast.Attribute(attr="add"), args=[old, new]) if _reads(old, target):
            return new
        case ast.List(elts=[ast.Starred(value=old), new]) if _reads(old, target):
            return new
    return None


def _keyed(fact: Store) -> Put | None:
    """Of kept[step] = loss."""
    match fact.node:
        case ast.Assign(targets=[ast.Subscript(slice=key) as target], value=value) if not isinstance(key, ast.Constant):
            return Put(fact.node, fact, target, value, is_sum=False)
    return None


def _reads(node: ast.expr, target: ast.expr) -> bool:
    if isinstance(target, ast.Subscript):
        return _is_place(node, target)
    return bool(dotted(target)) and _holds(node, dotted(target))


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
