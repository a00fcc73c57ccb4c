"""What the user has written: lines and words, found in bytecode and source, with nothing run."""

from __future__ import annotations

import ast
import dis
import inspect
import linecache
import re
import textwrap
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from . import frames

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import CodeType, FrameType


LOOPS = (ast.For, ast.AsyncFor, ast.While)


def codes(kind: type) -> Iterator[CodeType]:
    """The code of the user's methods of a class and of those it derives from, constructors first."""
    for each in kind.__mro__:
        methods = sorted(vars(each).items(), key=lambda item: item[0] != "__init__")
        for _, method in methods:
            code = code_of(method)
            if code is not None and frames.path_of(code) is not None:
                yield code


def code_of(method: Any) -> CodeType | None:
    """The code that the user wrote for a function, method or property, below all that was wrapped around it."""
    function = getattr(method, "__func__", None) or getattr(method, "fget", None) or method
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return getattr(function, "__code__", None)


def assigned(kind: type, name: str) -> tuple[str, int]:
    """File and line where a method of the class first sets self.NAME; ("", 0) when none does."""
    for code in codes(kind):
        line = stored(code, name)
        if line:
            return str(frames.path_of(code)), line
    return "", 0


def made(root: Any, path: str) -> tuple[str, int]:
    """File and line where the user's classes set the attribute that leads from ROOT to the module at PATH, the deepest
    that is known; ("", 0) for what was put together outside of classes.
    """
    where, owner = ("", 0), root
    for name in path.split("."):
        found = assigned(type(owner), name) if not name.isdecimal() else ("", 0)
        where = found if found[1] else where
        owner = getattr(owner, name, None)
    return where


def stored(code: CodeType, name: str, *, deleted: bool = False) -> int:
    """The first line of CODE that sets (or deletes) an attribute NAME, whoever's it is; 0 when none does."""
    wanted = "DELETE_ATTR" if deleted else "STORE_ATTR"
    found = [at.offset for at in dis.get_instructions(code) if at.opname == wanted and at.argval == name]
    return line_at(code, found[0]) if found else 0


def line_at(code: CodeType, offset: int) -> int:
    """The line that the instruction at OFFSET was compiled from."""
    return next((line for start, end, line in code.co_lines() if line and start <= offset < end), code.co_firstlineno)


def call_in(frame: FrameType) -> ast.Call | None:
    """The call that FRAME is in the middle of; None where its source cannot tell (always before Python 3.11)."""
    code = frame.f_code
    if not hasattr(code, "co_positions"):
        return None
    first, last, left, right = list(code.co_positions())[frame.f_lasti // 2]
    if first is None or last is None:
        return None
    lines = [linecache.getline(code.co_filename, number).encode() for number in range(first, last + 1)]
    lines[-1] = lines[-1][:right]
    lines[0] = lines[0][left:]
    try:
        found = ast.parse(b"(" + b"".join(lines) + b")", mode="eval").body
    except (SyntaxError, ValueError):
        return None
    return found if isinstance(found, ast.Call) else None


def returns(code: CodeType) -> list[int]:
    """The lines on which the function that CODE was compiled from returns something, without functions within it."""
    tree = tree_of(code)
    waiting, lines = list(ast.iter_child_nodes(tree)) if tree is not None else [], []
    waiting = [child for each in waiting for child in ast.iter_child_nodes(each)]  # below the function itself
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Return) and node.value is not None:
            lines.append(node.lineno)
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            waiting += ast.iter_child_nodes(node)
    return sorted(lines)


def root_of(frame: FrameType) -> int:
    """The line that last set the variable whose backward FRAME calls, before it does; 0 where there is none."""
    return _set_before(frame, lambda call: [call.func] if getattr(call.func, "attr", "") == "backward" else [])


def given_from(frame: FrameType) -> int:
    """The line that last set a variable which FRAME gives to what it calls, before it does; 0 where there is none."""
    return _set_before(frame, lambda call: [*call.args, *(each.value for each in call.keywords)])


def _set_before(frame: FrameType, parts: Callable[[ast.Call], list[ast.expr]]) -> int:
    tree, line = tree_of(frame.f_code), frame.f_lineno
    nodes = list(ast.walk(tree)) if tree is not None else []
    calls = [each for each in nodes if isinstance(each, ast.Call) and each.lineno <= line <= (each.end_lineno or line)]
    named = (each for call in calls for part in parts(call) for each in ast.walk(part))
    names = {each.id for each in named if isinstance(each, ast.Name)}
    stores = [each for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)]
    return max((each.lineno for each in stores if each.id in names and each.lineno < line), default=0)


def dropped(frame: FrameType) -> bool:
    """Whether the result of the call that FRAME is in the middle of is used by nobody."""
    after = (at for at in dis.get_instructions(frame.f_code) if at.offset > frame.f_lasti and at.opname != "CACHE")
    following: Any = next(after, None)
    if following is None or following.opname == "POP_TOP":
        return following is not None
    return str(following.opname).startswith("STORE_") and set(str(following.argval)) == {"_"}


def loops_around(code: CodeType, line: int) -> list[int]:
    """The lines where the loops around LINE of the file of CODE begin, the outermost first."""
    return sorted(first for first, last in _loops(code.co_filename) if first <= line <= last)


@lru_cache(maxsize=64)
def _loops(path: str) -> list[tuple[int, int]]:
    """The first and last line of each loop in a file."""
    tree = file_at(path)
    loops = [each for each in ast.walk(tree) if isinstance(each, LOOPS)] if tree is not None else []
    return [(each.lineno, each.body[-1].end_lineno or each.lineno) for each in loops]


def words(text: str) -> set[str]:
    """The parts of the names in TEXT, in lower case: val_loader gives val and loader."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", text)}


def lines_of(code: CodeType, first: int, last: int, *, comments: bool = False) -> str:
    """The lines FIRST to LAST of the file of CODE, with or without what is remarked there."""
    texts = (linecache.getline(code.co_filename, number) for number in range(max(first, 1), last + 1))
    return "".join((text if comments else text.partition("#")[0]).rstrip() + "\n" for text in texts)


def tree_of(code: CodeType) -> ast.AST | None:
    """The function, or the whole file, that CODE was compiled from; lines count from that of the file."""
    if code.co_name == "<module>":
        return file_of(code)
    lines = linecache.getlines(code.co_filename)[code.co_firstlineno - 1 :]
    return _parsed("".join(inspect.getblock(lines)) if lines else "", code.co_firstlineno)


def file_of(code: CodeType) -> ast.AST | None:
    """The whole file that CODE stands in."""
    return file_at(code.co_filename)


def file_at(path: str) -> ast.AST | None:
    return _parsed("".join(lines_at(path)), 1) if lines_at(path) else None


def lines_at(path: str) -> list[str]:
    """The lines of a file; none of one that cannot be read."""
    return linecache.getlines(path)


def _parsed(text: str, first: int) -> ast.AST | None:
    try:
        return ast.increment_lineno(ast.parse(textwrap.dedent(text)), first - 1)
    except (SyntaxError, ValueError):
        return None
