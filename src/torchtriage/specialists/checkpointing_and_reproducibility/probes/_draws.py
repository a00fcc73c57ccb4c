"""The user's own lines that draw from, or seed, a global generator of Python or NumPy."""

from __future__ import annotations

import ast
import linecache
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchtriage.examine.run.job.job import Job

    from .events import Draw

_FILES = 100  # of the user's, that are read
_MODULES = {"random": "random", "numpy.random": "numpy"}
_SEEDS = frozenset({"seed", "setstate", "set_state"})
_DRAWS = {
    "random": frozenset(
        {"random", "randint", "randrange", "choice", "choices", "sample", "shuffle", "uniform", "gauss"}
        | {"normalvariate", "betavariate", "triangular", "expovariate", "getrandbits", "randbytes"}
    ),
    "numpy": frozenset(
        {"rand", "randn", "randint", "random", "random_sample", "uniform", "normal", "standard_normal", "choice"}
        | {"shuffle", "permutation", "binomial", "poisson", "beta", "gamma", "exponential", "dirichlet", "laplace"}
    ),
}
_LOOPS = (ast.For, ast.While, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.comprehension)


class Draws:
    """Reads the user's files, and runs nothing of them."""

    def __init__(self, job: Job, script: str) -> None:
        self.job, self.script = job, script

    def of(self, sources: list[str]) -> dict[str, Draw]:
        """By source: whether some line seeds it, and the first line in a loop or function that draws from it."""
        found: dict[str, Draw] = {each: {"seeds": False, "path": "", "line": 0, "words": []} for each in sources}
        for path, text in self.files():
            try:
                tree = ast.parse(text)
            except (SyntaxError, ValueError):
                continue
            for source, name, node, around in _calls(tree):
                entry = found.get(source)
                if entry is None:
                    continue
                entry["seeds"] = entry.get("seeds") or name in _SEEDS
                if name in _DRAWS[source] and around and not entry.get("line"):
                    said = f"{' '.join(around)} {linecache.getline(path, node.lineno).partition('#')[0]}"
                    entry["path"], entry["line"] = self.job.path_of(path), node.lineno
                    entry["words"] = sorted(self.job.written.words(said))
        return found

    def files(self) -> Iterator[tuple[str, str]]:
        """The script, whose name is gone when Python ends, and the files of the modules that are the user's."""
        spaces = (getattr(each, "__dict__", {}) for each in list(sys.modules.values()))
        imported = [space.get("__file__") for space in spaces]  # to ask a lazy module for it might import that
        library = os.path.dirname(os.__file__)  # noqa: PTH120 - two thousand paths, most of them in there
        own = [path for path in imported if isinstance(path, str) and path.endswith(".py") and path[:1] == "/"]
        own = [path for path in own if not path.startswith(library) and "-packages/" not in path]
        for path in dict.fromkeys([self.script, *own[:_FILES]]):
            if path and self.job.path_of(path):
                yield path, "".join(linecache.getlines(path))


def _calls(tree: ast.AST) -> Iterator[tuple[str, str, ast.Call, list[str]]]:
    """The calls of functions of `random` and `numpy.random`: source, name, and the functions and loops around."""
    known = _imported(tree)

    def walk(node: ast.AST, around: list[str]) -> Iterator[tuple[str, str, ast.Call, list[str]]]:
        if isinstance(node, ast.Call):
            module, _, name = _resolved(node.func, known).rpartition(".")
            if module in _MODULES:
                yield _MODULES[module], name, node, around
        inner = [*around, getattr(node, "name", "for")] if isinstance(node, _LOOPS) else around
        if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
            inner = around  # a list that is made once
        for child in ast.iter_child_nodes(node):
            yield from walk(child, inner)

    return walk(tree, [])


def _imported(tree: ast.AST) -> dict[str, str]:
    """The dotted names that the names of the file stand for."""
    known: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for each in node.names:
                first = each.name.partition(".")[0]
                known[each.asname or first] = each.name if each.asname else first
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            known.update({each.asname or each.name: f"{node.module}.{each.name}" for each in node.names})
    return known


def _resolved(node: ast.AST, known: dict[str, str]) -> str:
    if isinstance(node, ast.Name):
        return known.get(node.id, "")
    if isinstance(node, ast.Attribute):
        owner = _resolved(node.value, known)
        return f"{owner}.{node.attr}" if owner else ""
    return ""
