"""What is kept of a part of a syntax tree."""

from __future__ import annotations

import ast
import gc
import weakref

from torchtriage.examine.source.nodes import names_in, nodes_in, once


def test_an_answer_is_worked_out_once_for_each_node() -> None:
    asked: list[ast.AST] = []

    @once
    def length(node: ast.Module) -> int:
        asked.append(node)
        return len(node.body)

    first, second = ast.parse("a = 1"), ast.parse("a = 1\nb = 2")
    assert [length(first), length(second), length(first)] == [1, 2, 1]
    assert asked == [first, second]


def test_an_answer_keeps_no_tree_alive() -> None:
    tree = ast.parse("model(batch)")
    kept = weakref.ref(tree)
    assert id(tree.body[0]) in nodes_in(tree)
    assert names_in(tree) == {"model", "batch"}
    del tree
    gc.collect()
    assert kept() is None


def test_names_are_those_of_variables_attributes_parameters_and_keywords() -> None:
    tree = ast.parse("def step(batch, *, scale):\n    return model.forward(batch, mask=None)")
    assert names_in(tree) == {"batch", "scale", "model", "forward", "mask"}
