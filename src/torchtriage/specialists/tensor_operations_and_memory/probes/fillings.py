"""The lines that put something into what keeps it: found in the source of the user's functions, with nothing run."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from .holders import GROWING, Holder, attributes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import CodeType

    from torchtriage.examine.run.job.job import Job

_ADDS = frozenset({"append", "appendleft", "extend", "add", "insert", "update", "setdefault", "push", "put"})
_SETTING = frozenset({"__init__", "__post_init__", "__setstate__"})
_MOST = 3  # lines that are told


def filled_at(job: Job, holder: Holder) -> list[tuple[str, int]]:
    """File and line of each statement that fills what HOLDER names, or adds to it: in its own functions, or else in
    those that are handed it, or else in their files.
    """
    trees, written = list(_trees(job, holder)), job.written
    for found in (
        _found((path, _fills(tree, holder)) for path, tree, code in trees if code.co_name != "__init__"),
        _found((path, _fills(tree, holder)) for path, tree, _ in trees),
        _found((path, _handed(tree, written.file_of(code), holder)) for path, tree, code in trees),
        _found((str(job.path_of(code)), _fills(written.file_of(code), holder)) for code in holder.codes),
    ):
        if found:
            return found
    return []


def _trees(job: Job, holder: Holder) -> Iterator[tuple[str, ast.AST, CodeType]]:
    for code in holder.codes:
        tree, path = job.written.tree_of(code), job.path_of(code)
        if tree is not None and path is not None:
            yield path, tree, code


def _found(files: Iterable[tuple[str, Iterable[tuple[int, bool]]]]) -> list[tuple[str, int]]:
    """The places of statements, of those only that speak of the entry that is meant where there are any."""
    every = {(path, line): keyed for path, lines in files for line, keyed in lines}
    return ([where for where, keyed in every.items() if keyed] or list(every))[:_MOST]


def _handed(tree: ast.AST, file: ast.AST | None, holder: Holder) -> Iterator[tuple[int, bool]]:
    """The lines of other functions of the FILE that fill what TREE hands them."""
    functions = {each.name: each for each in ast.walk(file) if isinstance(each, ast.FunctionDef)} if file else {}
    for call in (each for each in ast.walk(tree) if isinstance(each, ast.Call)):
        function = functions.get(str(getattr(call.func, "attr", None) or getattr(call.func, "id", "")))
        if function is None:
            continue
        names = [each.arg for each in (*function.args.posonlyargs, *function.args.args) if each.arg != "self"]
        given = [*zip(names, call.args, strict=False), *((each.arg, each.value) for each in call.keywords)]
        for name in (name for name, value in given if name and _names(value, holder)):
            yield from _fills(function, holder.called(name))


def set_at(job: Job, codes: list[CodeType], name: str) -> list[tuple[str, int]]:
    """File and line of each statement in CODES that sets the attribute NAME to something that is computed."""
    trees = [(str(job.path_of(code)), job.written.tree_of(code)) for code in codes]
    nodes = [(path, node) for path, tree in trees if tree is not None for node in ast.walk(tree)]
    computed = [(path, each) for path, each in nodes if isinstance(each, ast.Assign)]
    return [
        (path, each.lineno)
        for path, each in computed
        if not isinstance(each.value, ast.Constant)
        and any(isinstance(target, ast.Attribute) and target.attr == name for target in _targets(each))
    ]


def made_at(job: Job, holder: Holder) -> tuple[str, int]:
    """Where it is made: the first assignment to the name; ("", 0) when there is none."""
    for path, tree, _ in _trees(job, holder):
        for node in ast.walk(tree):
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and any(_names(each, holder) for each in _targets(node)):
                return path, node.lineno
    return "", 0


def _fills(tree: ast.AST | None, holder: Holder) -> Iterator[tuple[int, bool]]:
    """The lines, and whether they speak of the entry of HOLDER that is meant."""
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _ADDS:
            base, keys = _base(node.func.value)
            keys += [keyword.arg for keyword in node.keywords]
        elif isinstance(node, ast.AugAssign):
            base, keys = _base(node.target)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            found = next((each for each in _targets(node) if _added_to(each, node.value, holder)), None)
            if found is None:
                continue
            base, keys = _base(found)
        else:
            continue
        if _names(base, holder):
            yield node.lineno, holder.key is not None and holder.key in keys


def _targets(node: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [part for each in targets for part in (each.elts if isinstance(each, ast.Tuple) else [each])]


def _added_to(target: ast.expr, value: ast.expr | None, holder: Holder) -> bool:
    """Whether an assignment sets an entry of the container, or makes its variable from what it was before."""
    if isinstance(target, ast.Subscript):
        return True
    return value is not None and any(_names(each, holder) for each in ast.walk(value) if isinstance(each, ast.expr))


def _base(node: ast.expr) -> tuple[ast.expr, list[Any]]:
    """What a chain of entries begins with, and the constant keys of the chain: d["a"][0] and d.get("a") give d."""
    keys: list[Any] = []
    key: ast.expr
    while True:
        if isinstance(node, ast.Subscript):
            key, node = node.slice, node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            key, node = node.args[0], node.func.value
        else:
            return node, keys
        if isinstance(key, ast.Constant):
            keys.append(key.value)


def _names(node: ast.expr, holder: Holder) -> bool:
    if isinstance(node, ast.Attribute):
        return holder.of_object and node.attr == holder.last
    return isinstance(node, ast.Name) and not holder.of_object and node.id == holder.last


def filled_by(job: Job, thing: Any) -> list[tuple[str, str, int]]:
    """The attributes that methods of THING, or of the objects that it has, put something into: the name as it is
    written there, file and line. What ends by itself is left out; so are tensors and arrays.
    """
    found: dict[tuple[str, int], str] = {}
    for owner in (thing, *(value for _, value in attributes(thing))):
        for code in (each for each in job.written.codes(type(owner)) if each.co_name not in _SETTING):
            for name, value in attributes(owner):
                if isinstance(value, GROWING) and getattr(value, "maxlen", None) is None:
                    tree, holder = job.written.tree_of(code), Holder(f".{name}", [code], owner=type(owner))
                    found.update({(str(job.path_of(code)), line): f"self.{name}" for line, _ in _fills(tree, holder)})
    return [(name, *where) for where, name in found.items()][:_MOST]


def told_beside(job: Job, holder: Holder) -> list[Any]:
    """The other lines that fill it, and where it is made, as further places."""
    places = [(f"{holder.name} is filled here too", *each) for each in filled_at(job, holder)[1:]]
    return [*places, (f"{holder.name} is made here", *made_at(job, holder))]
