"""What the user's source makes of a loop over samples: where a figure is made of what it counted, and who tells it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

MEANS = frozenset({"mean", "fmean", "average", "nanmean"})
TAKES = frozenset({"tolist", "item", "cpu", "numpy", "unbind"})
JOINS = frozenset({"cat", "stack", "concatenate", "tensor", "array"})
SCORES = ("_score", "_error")
TELLS = frozenset({"print", "info", "debug", "warning", "log", "write", "add_scalar", "echo"})


class Figure(NamedTuple):
    """The lines that make a figure after a loop and that count for it, and the first and the last of the loop.

    labelled: whether it is told with the rank that it is of.
    """

    line: int
    counts: int
    labelled: bool
    span: tuple[int, int]


def counted(tree: ast.AST, line: int) -> Figure | None:
    """What is made of the loop that begins at LINE of the file TREE."""
    home = _home(tree, line)
    sums, span = _sums(home, line)
    after = [each for each in ast.walk(home) if getattr(each, "lineno", 0) > span[1]]
    sums |= {name: line for each in after for name in _taken_apart(each, sums)}
    for node in sorted((each for each in after if isinstance(each, ast.expr)), key=lambda each: each.lineno):
        counts = [sums[name] for part in _averaged(node) for name in _names(part) if name in sums]
        if counts:
            return Figure(node.lineno, min(counts), _labelled(tree, _results(home, node)), span)
    return None


def _home(tree: ast.AST, line: int) -> ast.AST:
    """The innermost function of LINE, or the file."""
    functions = [each for each in ast.walk(tree) if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))]
    holding = [each for each in functions if each.lineno <= line <= (each.end_lineno or 0)]
    return max(holding, key=lambda each: each.lineno, default=tree)


def _sums(home: ast.AST, line: int) -> tuple[dict[str, int], tuple[int, int]]:
    """What grows in the loop or the comprehension of LINE, with the first line that lets it, and where that lies."""
    for node in ast.walk(home):
        if isinstance(node, ast.For) and node.lineno == line:
            return _growing(node), (line, node.end_lineno or line)
        listed = isinstance(node, ast.Assign) and any(isinstance(each, ast.ListComp) for each in ast.walk(node.value))
        if isinstance(node, ast.Assign) and listed and node.lineno <= line <= (node.end_lineno or line):
            return dict.fromkeys(_names(node.targets[0]), node.lineno), (node.lineno, node.end_lineno or line)
    return {}, (line, line)


def _growing(loop: ast.For) -> dict[str, int]:
    """What n += 1, seen.append(x), meter.update(x), n = n + 1 let grow."""
    found: dict[str, int] = {}
    for node in ast.walk(loop):
        match node:
            case ast.AugAssign(target=target):
                name = ast.unparse(target.value if isinstance(target, ast.Subscript) else target)
            case ast.Call(func=ast.Attribute(attr="append" | "extend" | "update" | "add" | "add_", value=held)):
                name = ast.unparse(held)
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.BinOp(left=left)) if name in _names(left):
                pass
            case _:
                continue
        found[name] = min(node.lineno, found.get(name, node.lineno))
    return found


def _taken_apart(node: ast.AST, sums: Collection[str]) -> set[str]:
    """Names that hold what was counted, or parts of it: right, seen = counts.tolist(), losses = torch.cat(losses)."""
    match node:
        case ast.Assign(targets=[target], value=ast.Call(func=ast.Attribute(attr=name, value=held), args=given)):
            whole = [held] if name in TAKES else given if name in JOINS else []
            return _names(target) if any(_names(each) & set(sums) for each in whole) else set()
    return set()


def _averaged(node: ast.expr) -> Iterator[ast.expr]:
    """What an expression makes an average of."""
    match node:
        case ast.BinOp(op=ast.Div(), left=left):
            yield left
        case ast.Attribute(attr="avg" | "average", value=held):
            yield held
        case ast.Call(func=ast.Attribute(attr=name, value=held), args=given) if name in MEANS:
            yield from (held, *given)
        case ast.Call(func=ast.Name(id=name), args=given) if name in MEANS:
            yield from given
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=given) if name.endswith(SCORES):
            yield from given


def _names(node: ast.AST) -> set[str]:
    return {ast.unparse(each) for each in ast.walk(node) if isinstance(each, (ast.Name, ast.Attribute))}


def _results(home: ast.AST, figure: ast.expr) -> set[str]:
    """The names under which the figure is known: those it is stored in, and the function that returns it."""
    own = {home.name} if isinstance(home, (ast.FunctionDef, ast.AsyncFunctionDef)) else set()
    for node in ast.walk(home):
        if isinstance(node, ast.Assign) and any(each is figure for each in ast.walk(node.value)):
            own |= {name for target in node.targets for name in _names(target)}
    return own


def _labelled(tree: ast.AST, names: set[str]) -> bool:
    """Whether some line tells the figure and a rank at once: then it is meant as that of the rank."""
    nodes = list(ast.walk(tree))
    for node in nodes:
        if isinstance(node, ast.Assign) and _calls(node.value) & names:
            names = names | {name for target in node.targets for name in _names(target)}
    tells = [each for each in nodes if isinstance(each, ast.Call) and _tail(each.func) in TELLS]
    for call in tells:
        parts = {name for given in (*call.args, *call.keywords) for name in _names(given)}
        ranked = any("rank" in name.rpartition(".")[2].lower() for name in parts)
        if ranked and (parts & names or any(_calls(given) & names for given in call.args)):
            return True
    return False


def _calls(node: ast.AST) -> set[str]:
    """The functions and methods that an expression calls, by their last names."""
    return {_tail(each.func) for each in ast.walk(node) if isinstance(each, ast.Call)}


def _tail(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
