"""What is asked of a part of a syntax tree again and again, and worked out once."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import wraps
from typing import TypeVar
from weakref import WeakKeyDictionary

N = TypeVar("N", bound=ast.AST)
T = TypeVar("T")


def once(find: Callable[[N], T]) -> Callable[[N], T]:
    """FIND, with its answer kept as long as the node is: each execution of a file comes to the same nodes."""
    answers: WeakKeyDictionary[N, T] = WeakKeyDictionary()

    @wraps(find)
    def answer(node: N) -> T:
        if node not in answers:
            answers[node] = find(node)
        return answers[node]

    return answer


@once
def nodes_in(root: ast.AST) -> frozenset[int]:
    """ROOT and every node in it, by identity."""
    return frozenset(map(id, ast.walk(root)))


def other_branches(test: ast.If, node: ast.AST) -> list[ast.stmt]:
    """What TEST decides over and NODE is no part of: both branches where it stands in neither."""
    branches = (test.body, test.orelse)
    return [each for branch in branches if not any(id(node) in nodes_in(one) for one in branch) for each in branch]


@once
def names_in(root: ast.AST) -> frozenset[str]:
    """The names in the code of ROOT: of variables, attributes, parameters and keywords."""
    found = set[str]()
    for each in ast.walk(root):
        if isinstance(each, ast.Name | ast.Attribute):
            found.add(each.id if isinstance(each, ast.Name) else each.attr)
        elif isinstance(each, ast.arg | ast.keyword):
            found.add(each.arg or "")
    return frozenset(found)
