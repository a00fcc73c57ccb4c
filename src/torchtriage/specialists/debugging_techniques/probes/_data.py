"""The user's lines that make the samples of a data set, and put them together."""

from __future__ import annotations

import ast
import dis
from typing import TYPE_CHECKING, Any

from ._undefined import of_samples

if TYPE_CHECKING:
    from collections.abc import Set
    from types import CodeType
    from typing import TypeGuard

    from torchtriage.examine.run.job.job import Job

    from ._births import Told

_MOST = 6  # lines
_DRAWN = 3  # lines that draw an order
_ORDERS = frozenset({"randperm", "permutation", "shuffle"})
_SORTS = frozenset({"sort", "sorted", "argsort", "sample", "roll", "flip"})
_MADE = frozenset({"TensorDataset", "random_split"})


def samples(job: Job, loader: Any) -> list[Told]:
    """What a sample goes through on its way into the batches of LOADER, from the batch backwards."""
    kind = type(_data(loader))
    named = {code.co_name: code for code in job.written.codes(kind)}
    start = named.get("__getitem__") or named.get("__iter__")
    collate = job.written.code_of(getattr(loader, "collate_fn", None))
    found: list[Told] = []
    if collate is not None and job.path_of(collate) is not None:
        found += _returned(job, collate, "the batch is put together here")
    if start is None:
        return (found + _called(job, _MADE))[:_MOST]
    name = kind.__name__
    found += _returned(job, start, f"a sample of {name} is made here")
    for word in start.co_names:
        if word in named and word != "__len__":
            found += _returned(job, named[word], f"{word} of {name} makes a part of it")
            continue
        found += [
            (f"{word} of {name} is set here", *where) for code in named.values() for where in _set(job, code, word)
        ]
    return [*found[:_MOST], *_called(job, {name})[:1]]


def undefined(job: Job, loader: Any) -> list[Told]:
    """Where what goes into the batches of LOADER may have become NaN or infinite."""
    data = _data(loader)
    named = {code.co_name: code for code in job.written.codes(type(data))}
    starts = [named.get(name) for name in ("__getitem__", "__getitems__", "__iter__")]
    return of_samples(job, data, [*starts, job.written.code_of(getattr(loader, "collate_fn", None))])


def _data(loader: Any) -> Any:
    """What a loader reads in the end."""
    data = loader.dataset
    while type(data).__name__ == "Subset":
        data = data.dataset
    return data


def _set(job: Job, code: CodeType, name: str) -> list[tuple[str, int]]:
    """The lines of CODE that set an attribute NAME."""
    sets = [each for each in dis.get_instructions(code) if each.opname == "STORE_ATTR" and each.argval == name]
    return [(str(job.path_of(code)), job.written.line_at(code, each.offset)) for each in sets]


def _returned(job: Job, code: CodeType, says: str) -> list[Told]:
    """The last line of CODE that gives something back."""
    gives = [each for each in dis.get_instructions(code) if each.opname in ("RETURN_VALUE", "YIELD_VALUE")]
    lines = [job.written.line_at(code, each.offset) for each in gives]
    return [(says, str(job.path_of(code)), max(lines))] if lines else []


def orders(job: Job, loader: Any) -> list[Told]:
    """Where an order is made of inputs or labels, which belong together no longer unless both go by it: on the way to
    the batches of LOADER, and where the file that is running draws one.
    """
    codes = [job.written.code_of(getattr(loader, "collate_fn", None)), *job.written.codes(type(_data(loader)))]
    trees = [(str(job.path_of(code)), job.written.tree_of(code)) for code in codes if code and job.path_of(code)]
    found = [(path, line) for path, tree in trees for line, _ in _calls_in(tree, _SORTS | _ORDERS)]
    found += [(path, line) for path, line, _ in _calls(job, _ORDERS)]
    made = [("an order is made here: inputs and labels must go by the same one", *each) for each in found][:_DRAWN]
    users = {(path, line): None for path, tree in trees for line in _ordered(tree)}
    frame = job.frame()
    tree = job.written.file_of(frame.f_code) if frame is not None and not users else None
    users |= {(str(job.path_of(frame.f_code)), line): None for line in _ordered(tree)} if frame is not None else {}
    return [*made, *[("something goes by that order here", *each) for each in users][:_DRAWN]]


def _ordered(tree: ast.AST | None) -> list[int]:
    """The lines of TREE that index by a variable which is an order."""
    nodes = list(ast.walk(tree)) if tree is not None else []
    stores = [each for each in nodes if isinstance(each, ast.Assign) and _calls_in(each.value, _ORDERS | _SORTS)]
    names = {each.id for store in stores for target in store.targets for each in ast.walk(target) if _named(each)}
    by = [(each.lineno, each.slice) for each in nodes if isinstance(each, ast.Subscript)]
    return sorted({line for line, index in by if any(_named(each) and each.id in names for each in ast.walk(index))})


def _named(node: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name)


def _called(job: Job, kinds: Set[str]) -> list[Told]:
    """Where the file that is running makes data sets of these KINDS."""
    return [(f"{name} is made here", path, line) for path, line, name in _calls(job, kinds)]


def _calls(job: Job, names: Set[str]) -> list[tuple[str, int, str]]:
    """The calls of functions and methods of these NAMES in the file that is running: path, line, name."""
    frame = job.frame()
    tree = job.written.file_of(frame.f_code) if frame is not None else None
    path = str(job.path_of(frame.f_code)) if frame is not None else ""
    return [(path, *each) for each in _calls_in(tree, names)]


def _calls_in(tree: ast.AST | None, names: Set[str]) -> list[tuple[int, str]]:
    calls = [each for each in ast.walk(tree or ast.Pass()) if isinstance(each, ast.Call)]
    found = {
        (each.lineno, each.func.attr if isinstance(each.func, ast.Attribute) else getattr(each.func, "id", ""))
        for each in calls
    }
    return [(line, name) for line, name in sorted(found) if name in names]
