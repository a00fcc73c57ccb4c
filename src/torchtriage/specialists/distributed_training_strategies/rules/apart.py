"""Which names of a file may hold another value on each rank, and which tests hang on them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from torchtriage.examine.source.facts import Call, Scope, dotted
from torchtriage.examine.source.ranks import levels

_ROUNDS = 6
_NAMED = re.compile(
    r"rank|is_?(?:main|master|first|zero)|main_?proc|master|primary|leader|chief|proc_?i|process_i|worker_?id|coord"
    r"|\bpid\b|getpid|uuid|hostname|current_device|localid|mkdtemp|mkstemp",
    re.IGNORECASE,
)
_TURNS = re.compile(r"lock|once|first|turn|sequen|only|semaphore|mutex", re.IGNORECASE)
# Calls that give on what they are given: a number, a text, a path, an entry.
_GIVES_ON = frozenset(
    {"int", "str", "bool", "float", "min", "max", "format", "join", "joinpath", "Path", "PurePath", "range", "get"}
    | {"getattr", "replace", "divmod", "sum", "any", "all", "zfill", "rjust", "next", "iter", "enumerate", "zip"}
    | {"list", "tuple", "set", "sorted", "dict", "pop", "with_name", "with_suffix", "with_stem", "abs", "reversed"}
    | {"startswith", "endswith", "isinstance", "eq", "ne", "lt", "gt", "cycle", "islice", "chain", "map", "filter"}
)
_ADDS = frozenset({"append", "extend", "add", "update", "insert"})
_EXITS = frozenset({"exit", "_exit", "quit", "abort", "kill"})
# Decorators after which a function runs as often as it is called.
_TRANSPARENT = re.compile(
    r"(?:torch\.)?(?:no_grad|inference_mode|enable_grad|compile)|property|staticmethod|classmethod|(?:\w+\.)?record"
    r"|(?:\w+\.)*(?:contextmanager|wraps|hydra\.main|hydra_main)|hydra\.main|click\.\w+|\w+\.(?:command|callback)"
)
_Function = ast.FunctionDef | ast.AsyncFunctionDef


class Apart:
    """The names that may differ between the ranks, through the whole file: too many rather than too few."""

    def __init__(self, tree: ast.AST) -> None:
        self.names: set[str] = set()
        self._nodes = list(ast.walk(tree))
        self._words = {name: words for node in self._nodes for name, words in _fields(node)}
        turns = (each.target for each in self._nodes if isinstance(each, ast.For | ast.comprehension))
        self._turns = {name for target in turns for name in _targets(target)}
        for _ in range(_ROUNDS):
            before = len(self.names)
            for node in self._nodes:
                self.names.update(self._given(node))
            if len(self.names) == before:
                break

    def differs(self, node: ast.AST | None) -> bool:
        """Whether NODE may have another value on each rank."""
        match node:
            case None | ast.Constant():
                return False
            case ast.Name(id=name) | ast.Attribute(attr=name):
                return self._is_told(name)
            case ast.Subscript(value=value, slice=ast.Constant(value=str(key))):
                return bool(_NAMED.search(key)) or self.differs(value)
            case ast.Call():
                return self._gives_apart(node)
        return any(self.differs(each) for each in ast.iter_child_nodes(node))

    def _is_told(self, name: str) -> bool:
        return name in self.names or bool(_NAMED.search(name))

    def _gives_apart(self, call: ast.Call) -> bool:
        last, called = _last(call.func), call.func
        asked = call.args[:1] if last in ("get", "getenv") else []
        if self._is_told(last) or any(isinstance(e, ast.Constant) and _NAMED.search(str(e.value)) for e in asked):
            return True
        held = [called.value] if isinstance(called, ast.Attribute) else []
        values = [*held, *call.args, *(each.value for each in call.keywords)]
        return last in _GIVES_ON and any(self.differs(each) for each in values)

    def _given(self, node: ast.AST) -> Iterator[str]:
        match node:
            case ast.Assign(targets=targets, value=value) if self.differs(value):
                for target in targets:
                    yield from self._paired(target, value)
            case (
                ast.AnnAssign(target=target, value=value)
                | ast.AugAssign(target=target, value=value)
                | ast.NamedExpr(target=target, value=value)
                | ast.For(target=target, iter=value)
                | ast.comprehension(target=target, iter=value)
            ) if self.differs(value):
                yield from _targets(target)
            case ast.If(test=test) | ast.While(test=test) | ast.Match(subject=test) if self.differs(test):
                yield from _stored(node)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                if any(self._returns_apart(each) for each in ast.walk(node)):
                    yield node.name
            case ast.Call():
                yield from self._passed(node)

    def _paired(self, target: ast.expr, value: ast.expr) -> Iterator[str]:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            for each, part in zip(target.elts, value.elts, strict=True):
                yield from _targets(each) if self.differs(part) else ()
        else:
            yield from _targets(target)

    def _returns_apart(self, node: ast.AST) -> bool:
        if isinstance(node, ast.If | ast.Match) and self.differs(
            node.test if isinstance(node, ast.If) else node.subject
        ):
            return any(isinstance(each, ast.Return) for each in ast.walk(node))
        return isinstance(node, ast.Return | ast.Yield) and self.differs(node.value)

    def _passed(self, call: ast.Call) -> Iterator[str]:
        """The parameters and fields that take what differs."""
        last = _last(call.func)
        words = self._words.get(last, [])
        yield from (word for word, given in zip(words, call.args, strict=False) if self.differs(given))
        yield from (each.arg for each in call.keywords if each.arg is not None and self.differs(each.value))
        started = call.args[:1] if last in ("spawn", "start_processes") else []
        started = started or [each.value for each in call.keywords if each.arg in ("target", "fn")]
        for each in started:
            words = self._words.get(_last(each), [])
            if last != "Process":
                yield from words[:1]
                continue
            given = next((k.value for k in call.keywords if k.arg == "args"), None)
            for word, part in zip(words, given.elts if isinstance(given, ast.Tuple) else (), strict=False):
                if self.differs(part) or (isinstance(part, ast.Name) and part.id in self._turns):
                    yield word

    def feeds(self, node: ast.expr) -> bool:
        """Whether something that differs goes into NODE, by any call and over the names that its parts have."""
        names: set[str] = set()
        todo: list[ast.AST] = [node]
        while todo:
            for each in _less_moves(todo.pop()):
                if isinstance(each, ast.Name | ast.Attribute | ast.Call | ast.Subscript) and self.differs(each):
                    return True
                name = each.id if isinstance(each, ast.Name) else each.attr if isinstance(each, ast.Attribute) else ""
                if name and name not in names:
                    names.add(name)
                    todo += self._sources(name)
        return False

    def _sources(self, name: str) -> Iterator[ast.AST]:
        """The values, functions and classes that the file gives NAME to."""
        for each in self._nodes:
            match each:
                case ast.Assign(targets=targets, value=value) if any(name in _targets(target) for target in targets):
                    yield value
                case ast.FunctionDef(name=own) | ast.ClassDef(name=own) if own == name:
                    yield each

    def leaves_somewhere(self) -> bool:
        """Whether some ranks end, or go to another folder, anywhere in this file."""
        for node in self._nodes:
            if isinstance(node, ast.Call) and _last(node.func) == "chdir":
                return True
            if isinstance(node, ast.If) and self.differs(node.test):
                for each in ast.walk(node):
                    if isinstance(each, ast.Raise) or (isinstance(each, ast.Call) and _last(each.func) in _EXITS):
                        return True
        return False

    def tells_apart(self, call: Call) -> bool:
        """Whether what stands around CALL, or before it, may let only some of the ranks come here."""
        for block, statements in levels(call):
            if any(self._parts(each) for each in _around(block.owner)):
                return True
            earlier = (each for each in statements if each.lineno < call.node.lineno)
            if any(self._ends(each) for each in earlier):
                return True
        scope: Scope | None = call.scope
        while scope is not None:
            for each in getattr(scope.node, "decorator_list", ()):
                if not _TRANSPARENT.fullmatch(dotted(each.func if isinstance(each, ast.Call) else each)):
                    return True
            scope = scope.parent
        return False

    def _parts(self, node: ast.expr) -> bool:
        locks = isinstance(node, ast.Call | ast.Name | ast.Attribute) and _TURNS.search(
            ast.unparse(node).partition("(")[0]
        )
        return bool(locks) or self.differs(node)

    def _ends(self, node: ast.stmt) -> bool:
        if isinstance(node, ast.Assert):
            return self.differs(node.test)
        leaving = (ast.Return, ast.Continue, ast.Break, ast.Raise)
        if isinstance(node, ast.If | ast.Match):
            test = node.test if isinstance(node, ast.If) else node.subject
            return self.differs(test) and any(isinstance(each, leaving) for each in ast.walk(node))
        return isinstance(node, ast.With | ast.Try | ast.For | ast.While) and any(
            self._ends(each) for each in ast.walk(node) if isinstance(each, ast.If | ast.Match | ast.Assert)
        )


def _less_moves(node: ast.AST) -> Iterator[ast.AST]:
    """NODE and its parts, without the device that something is moved to: the same data are on each."""
    if isinstance(node, ast.Call) and _last(node.func) in ("to", "cuda", "device", "set_device"):
        node = node.func
    yield node
    for each in ast.iter_child_nodes(node):
        yield from _less_moves(each)


def _around(owner: ast.AST) -> Iterable[ast.expr]:
    match owner:
        case ast.If(test=test) | ast.While(test=test):
            return [test]
        case ast.For(iter=taken):
            return [taken]
        case ast.With(items=items):
            return [item.context_expr for item in items]
        case ast.Match(subject=subject):
            return [subject]
    return []


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else dotted(node).rpartition(".")[2]


def _targets(node: ast.expr) -> Iterator[str]:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            yield name
        case ast.Subscript(value=value) | ast.Starred(value=value):
            yield from _targets(value)
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            for each in parts:
                yield from _targets(each)


def _stored(node: ast.AST) -> Iterator[str]:
    for each in ast.walk(node):
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr in _ADDS:
            yield from _targets(each.func.value)
        if isinstance(each, ast.Name | ast.Attribute | ast.Subscript) and isinstance(each.ctx, ast.Store):
            yield from _targets(each)


def _fields(node: ast.AST) -> Iterator[tuple[str, list[str]]]:
    """The words that a function, a class or a named tuple of the file takes in their order."""
    match node:
        case ast.FunctionDef(name=name, args=given) | ast.AsyncFunctionDef(name=name, args=given):
            words = [each.arg for each in (*given.posonlyargs, *given.args)]
            yield name, words[1:] if words[:1] in (["self"], ["cls"]) else words
        case ast.ClassDef(name=name, body=body):
            notes = [
                each.target.id for each in body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
            ]
            made = next((each for each in body if isinstance(each, _Function) and each.name == "__init__"), None)
            yield name, [each.arg for each in made.args.args[1:]] if made is not None else notes
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=called, args=[_, fields])):
            if _last(called) == "namedtuple":
                text = [each.value for each in ast.walk(fields) if isinstance(each, ast.Constant)]
                yield name, " ".join(str(each) for each in text).replace(",", " ").split()
