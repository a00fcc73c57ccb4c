"""What context managers of the file run behind their yield, or in __exit__: after the block they are entered for."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from torchtriage.examine.source.facts import Action, Block, Call, Scope, dotted
from torchtriage.examine.source.trace import Trace

# The code of SCOPE that runs, and the blocks in which it does.
Run: TypeAlias = tuple[Scope, Sequence[Action], tuple[Block, ...]]


class Exits:
    """The with-statements of one piece of code: met with its actions in order, each says what has to run meanwhile.

    Blocks OUTSIDE of the piece are entered and left where nobody looks.
    """

    def __init__(self, trace: Trace, outside: Sequence[Block] = ()) -> None:
        self.trace = trace
        self._seen = {id(block) for block in outside}
        self._open: list[tuple[Block, list[Run]]] = []
        self._loose: list[Run] = []

    def met(self, action: Action) -> Iterator[Run]:
        """What runs before ACTION: the ends of the blocks that are left by then, the beginnings of those entered."""
        path = action.path
        while self._open and self._open[-1][0] not in path:
            yield from self._open.pop()[1]
        for block in path:
            if block.kind == "with" and id(block) not in self._seen:
                self._seen.add(id(block))
                at = path[: path.index(block) + 1]
                yield from self._entered(block, at, action.scope)

    def rest(self) -> Iterator[Run]:
        """What runs after the last action."""
        while self._open:
            yield from self._open.pop()[1]
        yield from self._loose

    def start(self, call: Call, helper: Scope) -> Sequence[Action]:
        """What HELPER, which CALL calls, runs at once: a generator for a with-statement stops at its yield."""
        end = _yield(helper)
        if end is None:
            return helper.actions
        entered = isinstance(call.statement, ast.With | ast.AsyncWith) and any(
            item.context_expr is call.node for item in call.statement.items
        )
        if not entered:  # stack.enter_context(update(optimizer)): it ends with the block around, or all that is here
            ends = self._open[-1][1] if self._open else self._loose
            ends.insert(0, (helper, _behind(helper, end), call.path))
        return [each for each in helper.actions if _line(each) <= end]

    def _entered(self, block: Block, path: tuple[Block, ...], scope: Scope) -> Iterator[Run]:
        ends: list[Run] = []
        for item in block.owner.items if isinstance(block.owner, ast.With | ast.AsyncWith) else ():
            node = item.context_expr
            made = self.trace.definition(node.func, scope) if isinstance(node, ast.Call) else None
            end = _yield(made) if made is not None else None
            if made is not None and end is not None:
                ends.insert(0, (made, _behind(made, end), path))
                continue
            host = self.trace.instance(node, scope) if isinstance(node, ast.Call | ast.Name | ast.Attribute) else None
            begin = self.trace.method(host, "__enter__") if host is not None else None
            last = self.trace.method(host, "__exit__") if host is not None else None
            if begin is not None and last is not None:
                yield begin, begin.actions, path
                ends.insert(0, (last, last.actions, path))
        self._open.append((block, ends))


def _yield(function: Scope) -> int | None:
    """The line at which a function for with-statements hands over to their blocks."""
    node = function.node
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or not node.decorator_list:
        return None
    if not any(dotted(each).rpartition(".")[2].endswith("contextmanager") for each in node.decorator_list):
        return None
    return next((each.lineno for each in ast.walk(node) if isinstance(each, ast.Yield)), None)


def _behind(function: Scope, end: int) -> list[Action]:
    return [each for each in function.actions if _line(each) > end]


def _line(action: Action) -> int:
    return int(getattr(action.node, "lineno", 0))
