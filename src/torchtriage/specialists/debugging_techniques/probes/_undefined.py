"""The user's lines that may have made NaN or infinity of data: found in what is written, on the way that data take."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ._calls import value_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import CodeType, FrameType

    from torchtriage.examine.run.job.job import Job

    from ._births import Told

_MOST = 3  # lines
_DEEP = 3  # calls from the function that makes a sample
_FRAMES = 4  # of the user's code, from the innermost outwards
_ZERO = frozenset({"std", "var", "norm", "sum", "mean", "max", "min", "amax", "amin", "ptp", "abs", "prod", "diff"})
_EDGES = frozenset({"log", "log2", "log10", "sqrt", "rsqrt", "reciprocal", "acos", "asin", "arccos", "arcsin", "logit"})
_BOUNDS = frozenset({"clamp", "clamp_", "clamp_min", "clamp_min_", "clip", "maximum", "fmax", "where", "exp", "len"})
_SIZES = frozenset({"shape", "size", "numel", "dim", "ndim"})

_Danger = tuple[int, int, str]  # how likely, 0 being the likeliest; line; what stands there


def of_samples(job: Job, data: Any, codes: Iterable[CodeType | None]) -> list[Told]:
    """Those on the way of a sample of the data set DATA, CODES being what makes samples and batches; nearest first."""
    starts = [code for code in codes if code is not None and job.path_of(code) is not None]
    frame = job.frame()
    code = starts[0] if starts else frame.f_code if frame is not None else None
    if code is None:
        return []
    file, kind = _File(job, code), type(data)
    near: list[ast.AST] = [node for each in starts for node in file.at(each)]
    near += [node for name in _kinds(data) for node in file.methods(name, ("__call__", "forward"))]
    made = file.methods(kind.__name__, ("__init__", "setup", "prepare"))
    levels = (near, made, file.before(kind.__name__))
    return file.told(next((found for level in levels if (found := _likely(file.dangers(level)))), []))


def of_inputs(job: Job) -> list[Told]:
    """Those on the way to what the model is given, in the functions that are running, and those that they call."""
    frame, names, nodes = job.frame(), set[str](), list[ast.AST]()
    file = _File(job, frame.f_code) if frame is not None else None
    for _ in range(_FRAMES):
        tree = job.written.tree_of(frame.f_code) if frame is not None else None
        if frame is None or file is None or tree is None:
            break
        names |= _given(job, frame, tree) if not names else _at(tree, frame.f_lineno)
        for _ in range(2):
            made = list(_makers(tree, names))
            nodes += [each for each in made if each not in nodes]
            names |= {each.id for node in made for each in ast.walk(node) if isinstance(each, ast.Name)}
        frame = job.frame(frame.f_back) if frame.f_back is not None else None
    if file is None:
        return []
    lines = [
        (0, node.lineno, "what the model is given comes from here") for node in nodes if isinstance(node, ast.expr)
    ]
    return file.told([*_likely(file.dangers(nodes)), *lines[:1]])


class _File:
    """Functions and classes of the file in which CODE stands; models and training loops are left out."""

    def __init__(self, job: Job, code: CodeType) -> None:
        self.path = str(job.path_of(code))
        self.tree = job.written.file_of(code) or ast.Module([], [])
        models = {type(part).__name__ for root in job.roots for part in root.modules()}
        self.classes = {node.name: node for node in ast.walk(self.tree) if isinstance(node, ast.ClassDef)}
        aside = {each for name in models & set(self.classes) for each in ast.walk(self.classes[name])}
        self.functions: dict[str, list[ast.FunctionDef]] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef) and node not in aside and not _trains(node):
                self.functions.setdefault(node.name, []).append(node)

    def at(self, code: CodeType) -> list[ast.FunctionDef]:
        """The function that CODE was compiled from; its line may be that of a decorator."""
        found = self.functions.get(code.co_name, [])
        return [node for node in found if code.co_firstlineno <= node.lineno <= code.co_firstlineno + 3]

    def methods(self, kind: str, names: tuple[str, ...]) -> list[ast.AST]:
        body = self.classes[kind].body if kind in self.classes else []
        return [node for node in body if isinstance(node, ast.FunctionDef) and node.name in names]

    def before(self, kind: str) -> list[ast.AST]:
        """The statements up to those that make a KIND, in the functions, or the script, where they stand."""
        found: list[ast.AST] = []
        for scope in (self.tree, *(node for some in self.functions.values() for node in some)):
            body = [
                each for each in getattr(scope, "body", ()) if not isinstance(each, (ast.FunctionDef, ast.ClassDef))
            ]
            last = max((at for at, each in enumerate(body) if kind in _called(each)), default=-1)
            found += [each for each in body[: last + 1] if not _trains(each)]
        return found

    def dangers(self, nodes: Iterable[ast.AST]) -> list[_Danger]:
        """What stands in NODES and in the functions of this file that they use, the nearest first."""
        queue, seen, found = [(node, 0) for node in nodes], set[ast.AST](), list[_Danger]()
        for node, depth in queue:
            if node in seen:
                continue
            seen.add(node)
            found += _dangers(node)
            if depth < _DEEP:
                queue += [(each, depth + 1) for name in _called(node) for each in self.functions.get(name, ())]
                inner = ("__init__", "__call__")
                queue += [(each, depth + 1) for name in _called(node) for each in self.methods(name, inner)]
        return found

    def told(self, found: list[_Danger]) -> list[Told]:
        return [(says, self.path, line) for _, line, says in found][: _MOST + 1]


def _likely(found: list[_Danger]) -> list[_Danger]:
    """The likeliest ones first, each line once; what seems kept from zero only where there is nothing else."""
    ordered = sorted(found, key=lambda each: each[0])
    return list({each[1]: each for each in ordered if each[0] < 3 or ordered[0][0] == 3}.values())[:_MOST]


def _dangers(root: ast.AST) -> Iterator[_Danger]:
    for node in ast.walk(root):
        if isinstance(node, ast.expr) and _is_nan(node):
            yield 0, node.lineno, "NaN is written here"
        elif isinstance(node, (ast.BinOp, ast.AugAssign)) and isinstance(node.op, ast.Div):
            under = node.right if isinstance(node, ast.BinOp) else node.value
            rank = rank_of(under, root)
            if rank is not None:
                yield rank, under.lineno, "a division stands here, which gives NaN or infinity by zero"
        elif isinstance(node, ast.Call) and (name := name_of(node.func)) in _EDGES:
            inner = node.args[0] if node.args else getattr(node.func, "value", node)
            rank = rank_of(inner, root)
            if rank is not None:
                yield min(rank, 1), node.lineno, f"{name} stands here, which gives NaN or infinity at zero or below"


def rank_of(under: ast.AST, scope: ast.AST, depth: int = 2) -> int | None:
    """How likely it is zero what stands UNDER a line: 1 to 3; None for what is kept from it."""
    if isinstance(under, ast.Name) and depth:
        made = list(_makers(scope, {under.id}))
        ranks = [rank_of(each, scope, depth - 1) for each in made]
        return min((each for each in ranks if each is not None), default=None) if ranks else 2
    if isinstance(under, ast.Constant):
        return None if under.value else 1
    if isinstance(under, ast.BinOp) and isinstance(under.op, ast.Add):
        parts = under.left, under.right
        return None if any(isinstance(each, ast.Constant) and each.value for each in parts) else 3
    names = {name_of(each.func) for each in ast.walk(under) if isinstance(each, ast.Call)}
    named = names | {each.attr for each in ast.walk(under) if isinstance(each, ast.Attribute)}
    if named & (_BOUNDS | _SIZES):
        return None
    return 1 if names & _ZERO or (isinstance(under, ast.BinOp) and isinstance(under.op, ast.Sub)) else 2


def _is_nan(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr.lower() == "nan"
    text = isinstance(node, ast.Call) and name_of(node.func) == "float" and len(node.args) == 1 and node.args[0]
    return isinstance(text, ast.Constant) and str(text.value).lower().strip("+-") == "nan"


def _makers(scope: ast.AST, names: set[str]) -> Iterator[ast.AST]:
    """What is assigned to NAMES in SCOPE."""
    for node in ast.walk(scope):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        value = getattr(node, "value", None) or getattr(node, "iter", None)
        walked = [each for target in targets if target is not None for each in ast.walk(target)]
        stored = {each.id for each in walked if isinstance(each, ast.Name)}
        if value is not None and stored & names:
            yield value


def _given(job: Job, frame: FrameType, tree: ast.AST) -> set[str]:
    """The variables that the calls of models in TREE are given."""
    roots = {id(root) for root in job.roots}
    calls = [each for each in ast.walk(tree) if isinstance(each, ast.Call) and id(value_of(each.func, frame)) in roots]
    given = [each for call in calls for each in (*call.args, *(word.value for word in call.keywords))]
    return {each.id for one in given for each in ast.walk(one) if isinstance(each, ast.Name)}


def _at(tree: ast.AST, line: int) -> set[str]:
    """The variables that the calls in a LINE are given."""
    calls = [each for each in ast.walk(tree) if isinstance(each, ast.Call)]
    here = [each for each in calls if each.lineno <= line <= (each.end_lineno or line)]
    return {each.id for call in here for one in call.args for each in ast.walk(one) if isinstance(each, ast.Name)}


def _called(node: ast.AST) -> set[str]:
    """Names of functions, methods and classes that are used in NODE."""
    uses = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    return uses | {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}


def name_of(function: ast.AST) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _trains(node: ast.AST) -> bool:
    return any(isinstance(each, ast.Attribute) and each.attr == "backward" for each in ast.walk(node))


def _kinds(data: Any) -> list[str]:
    """The classes of what DATA holds that can be called, and of what that holds."""
    held = [each for value in getattr(data, "__dict__", {}).values() for each in _several(value)]
    inner = [each for value in held for more in getattr(value, "__dict__", {}).values() for each in _several(more)]
    return list(dict.fromkeys(type(each).__name__ for each in (*held, *inner) if callable(each)))


def _several(value: Any) -> list[Any]:
    return list(value)[:8] if type(value) in (list, tuple) else [value]
