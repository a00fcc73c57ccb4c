"""What the source alone shows about methods that are named where they were to be called."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchtriage.core.evidence import Edit
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import dotted
from torchtriage.examine.source.script import Script

# A method, and what does not happen when it is only named.
_LOST = {
    "eval": "the model stays in the mode it was in, with dropout and batch statistics as in training",
    "train": "the model stays in the mode it was in",
    "zero_grad": "the gradients stay and the next ones are added to them",
    "step": "nothing is stepped",
    "backward": "no gradient is computed",
    "update": "nothing is updated",
    "synchronize": "nothing is waited for",
    "barrier": "no rank waits",
    "empty_cache": "nothing is released",
    "init_process_group": "no process group is made",
    "destroy_process_group": "the process group stays",
    "requires_grad_": "requires_grad stays as it was",
    "no_sync": "gradients are reduced as before",
}
_ENDS = re.compile(rb"\.(?:%s)[ \t]*(?:[#;,\])\r\n]|(?:if|else|for)[ \t(]|$)" % "|".join(_LOST).encode())
_TRAINING = ("torch", "accelerate", "pytorch_lightning", "lightning", "transformers", "deepspeed")


@detector("source/method-not-called")
def method_not_called(script: Script) -> Iterator[Sighting]:
    """A method is named as a statement of its own, without parentheses: nothing happens."""
    if not _ENDS.search(script.text.data):
        return
    if not any(name.partition(".")[0] in _TRAINING for name in script.facts.imports):
        return
    tree = script.facts.scopes[0].node
    tried = _tried(tree)
    for node in ast.walk(tree):
        for named in _dropped(node.value) if isinstance(node, ast.Expr) and id(node) not in tried else ():
            is_method = bool(dotted(named)) or (
                named.attr == "backward" and isinstance(named.value, ast.Call | ast.BinOp)
            )
            if named.attr in _LOST and is_method and not _is_property(script, named.attr):
                fact = f"{script.source(named)} is looked up here and not called: {_LOST[named.attr]}"
                yield script.seen(named, fact, edits=_called(script, named))


def _dropped(value: ast.expr) -> Iterator[ast.Attribute]:
    """The attributes whose value a statement drops: a.step, (a.step, b.step), a.train if on else a.eval."""
    match value:
        case ast.Attribute():
            yield value
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            for part in parts:
                yield from _dropped(part)
        case ast.IfExp(body=one, orelse=other):
            yield from (*_dropped(one), *_dropped(other))
        case ast.BoolOp(values=[*_, last]):
            yield from _dropped(last)
        case ast.ListComp(elt=each) | ast.SetComp(elt=each):
            yield from _dropped(each)


def _tried(tree: ast.AST) -> set[int]:
    """The statements that only ask whether the attribute is there: try … except AttributeError, pytest.raises."""
    asking = [node for node in ast.walk(tree) if isinstance(node, ast.Try | ast.With) and _asks(node)]
    return {id(inner) for node in asking for inner in ast.walk(node) if isinstance(inner, ast.Expr)}


def _asks(node: ast.Try | ast.With) -> bool:
    if isinstance(node, ast.With):
        made = [item.context_expr for item in node.items]
        return any(isinstance(each, ast.Call) and "raises" in dotted(each.func).lower() for each in made)
    caught = (name for handler in node.handlers if handler.type is not None for name in ast.walk(handler.type))
    return any(dotted(name) == "AttributeError" for name in caught)


def _is_property(script: Script, name: str) -> bool:
    """Whether a class of this file computes something when NAME is looked up."""
    return any(
        "property" in dotted(each)
        for scope in script.facts.scopes
        if scope.name == name and isinstance(scope.node, ast.FunctionDef)
        for each in scope.node.decorator_list
    )


def _called(script: Script, named: ast.Attribute) -> tuple[Edit, ...]:
    # what the two need, a flag and a model, nobody can guess
    return () if named.attr in ("init_process_group", "no_sync", "update") else script.appended("call-it", named, "()")
