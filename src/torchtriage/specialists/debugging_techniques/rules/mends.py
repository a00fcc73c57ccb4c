"""Edits that put right what executions show about a training step."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from torchtriage.core.evidence import Edit
from torchtriage.examine.source.execution.trainings import Mend
from torchtriage.examine.source.execution.values import Spot
from torchtriage.examine.source.script import Script


def move_before(remedy: str, to: Spot) -> Mend:
    """The edits that put a one-line statement before the one at TO, where both are lines of one block."""
    return partial(_moved, remedy, to, after=False)


def move_after(remedy: str, to: Spot) -> Mend:
    """The edits that put a one-line statement behind the one at TO, where both are lines of one block."""
    return partial(_moved, remedy, to, after=True)


def _moved(remedy: str, to: Spot, script: Script, node: ast.AST, *, after: bool) -> tuple[Edit, ...]:
    if to.path != script.text.path:
        return ()
    for block in _blocks(script.tree):
        mine = next((each for each in block if isinstance(each, ast.Expr) and each.value is node), None)
        goal = next((each for each in block if isinstance(each, ast.Expr) and each.value is to.node), None)
        if mine is not None and goal is not None:
            return _lines_moved(script, remedy, mine, goal, after=after)
    return ()


def _blocks(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    """Every list of statements in TREE."""
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                yield block


def _lines_moved(script: Script, remedy: str, statement: ast.stmt, to: ast.stmt, *, after: bool) -> tuple[Edit, ...]:
    line, goal = statement.lineno, to.lineno
    alone = all(each.end_lineno == each.lineno and _is_alone(script, each) for each in (statement, to))
    if not alone or statement.col_offset != to.col_offset:
        return ()
    raw = script.text.raw(line)
    if not raw.endswith(b"\n") or not script.text.raw(goal).endswith(b"\n"):
        return ()
    start = script.text.start(goal) + (len(script.text.raw(goal)) if after else 0)
    return (*script.line_removed(remedy, line), *script.change(remedy, start, start, raw.decode(errors="replace")))


def _is_alone(script: Script, statement: ast.stmt) -> bool:
    """Whether STATEMENT begins its line and no other follows on it."""
    raw = script.text.raw(statement.lineno)
    before = raw[: statement.col_offset]
    rest = raw[statement.end_col_offset or 0 :].strip()
    joined = statement.lineno > 1 and script.text.raw(statement.lineno - 1).rstrip(b"\r\n").endswith(b"\\")
    return not before.strip() and (not rest or rest.startswith(b"#")) and not joined


def drop_activation(script: Script, node: ast.AST) -> tuple[Edit, ...]:
    """The activation replaced by what it is given; users of the model's output may count on probabilities."""
    if not isinstance(node, ast.Call) or node.lineno != node.end_lineno:
        return ()
    kept = _input(script, node)
    if not isinstance(kept, ast.Name | ast.Call | ast.Attribute | ast.Subscript):
        return ()
    return script.replaced("drop-the-activation", node, script.source(kept))


def _input(script: Script, node: ast.Call) -> ast.expr | None:
    """What the activation NODE is applied to; None for the making of a module."""
    name = script.names.resolve(node.func, script.facts.scopes[0])
    first = next(iter(node.args), None)
    if name:
        return first if name.islower() else None
    match node.func:
        case ast.Attribute(value=method, attr="softmax" | "sigmoid") if _is_dimension(node):
            return method
        case ast.Attribute(value=ast.Name(id="self")) | ast.Call():
            return first
    return None


def _is_dimension(node: ast.Call) -> bool:
    """Whether a method is given nothing but a dimension, so that what it is called on is the tensor."""
    return all(isinstance(each, ast.Constant | ast.UnaryOp) for each in (*node.args, *(k.value for k in node.keywords)))


def call_it(script: Script, node: ast.AST) -> tuple[Edit, ...]:
    """Parentheses behind a method that is only named."""
    return script.appended("call-it", node, "()")


def call_accelerator(made: Spot) -> Mend:
    """loss.backward() becomes accelerator.backward(loss), where what MADE made has a name in the same function."""
    return partial(_through, made)


def _through(made: Spot, script: Script, node: ast.AST) -> tuple[Edit, ...]:
    for block in _blocks(script.tree):
        for each in block:
            match each:
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if value is made.node:
                    is_seen = any(inner is node for statement in block for inner in ast.walk(statement))
                    loss = (
                        node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
                    )
                    if is_seen and isinstance(loss, ast.Name):
                        return script.replaced("through-the-framework", node, f"{name}.backward({loss.id})")
    return ()
