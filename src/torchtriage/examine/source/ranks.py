"""Code that only some of the processes of one job reach: which tests ask for the rank, and what stands under them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import islice
from typing import Literal

from msgspec import Struct

from torchtriage.examine.source.facts import Block, Call, Scope, dotted
from torchtriage.examine.source.script import Script

# Which ranks go on: the first, all but the first, or some others.
Who = Literal["main", "other", "some"]

_DEEP, _WAYS = 4, 16
_OPPOSITE: dict[Who, Who] = {"main": "other", "other": "main", "some": "some"}
_RANK = re.compile(r"_?(?:(?:local|global|world|node|dist|ddp|my|cur|current|process)_?)?rank(?:_?id)?|process_index")
_MAIN = re.compile(
    r"_?(?:is_?|am_?)?(?:on_?)?(?:local_|global_|dist_|world_)?"
    r"(?:(?:main|master|primary|chief|leader|root)(?:_?(?:process|proc|node|worker|rank|gpu))?"
    r"|rank_?(?:0|zero)|global_zero|process_zero)"
)
_ONE = re.compile(r"_?(?:src|dst|root|main|master|source|dest|destination|owner)(?:_?rank)?")
_ASKED = re.compile(r"_?get_(?:(?:local|global|world|node|dist)_)?rank")
_VARIABLE = re.compile(r"(?:LOCAL_|SLURM_|OMPI_COMM_WORLD_|GROUP_)?(?:RANK|PROCID|LOCALID)")
# A test beside the rank's that only asks whether there are several processes at all.
_SEVERAL = re.compile(r"dist|world|parallel|multi|gpus|initialized|available|\b(?:is_|use_)?(?:ddp|fsdp)\b")


class Guard(Struct, frozen=True):
    """A test of the rank that CALL lies behind: under it, or after a branch of it that leaves.

    call: at the level of the test; the guarded thing itself or a call that leads to it. node: the if statement.
    """

    node: ast.If
    who: Who
    call: Call


def ways(script: Script, call: Call) -> Iterator[tuple[Call, ...]]:
    """CALL, the call of the function that it stands in, and so on outwards; one for every way there."""
    yield from islice(_outwards(script, call, 0, ()), _WAYS)


def _outwards(script: Script, call: Call, deep: int, through: tuple[Scope, ...]) -> Iterator[tuple[Call, ...]]:
    scope = call.scope
    open_ = scope.kind in ("function", "lambda") and deep < _DEEP and scope not in through
    sites = script.trace.sites(scope) if open_ else ()
    if not sites:
        yield (call,)
    for site in sites:
        for way in _outwards(script, site, deep + 1, (*through, scope)):
            yield (call, *way)


def guards(script: Script, call: Call) -> Iterator[Guard]:
    """The tests of the rank that CALL lies behind in its own function, from the outside inwards."""
    for block, statements in levels(call):
        if isinstance(block.owner, ast.If) and block.kind == "arm":
            own, pure = _selected(script, block.owner.test, call.scope)
            if own is not None and is_then(block.owner, call):
                yield Guard(block.owner, own, call)
            elif own is not None and pure and not is_then(block.owner, call):
                yield Guard(block.owner, _OPPOSITE[own], call)
        yield from _after_leaving(script, statements, call)


def _after_leaving(script: Script, statements: list[ast.stmt], call: Call) -> Iterator[Guard]:
    for each in statements:
        if each.lineno >= call.node.lineno:
            return
        if isinstance(each, ast.If) and isinstance(each.body[-1], ast.Return | ast.Continue | ast.Break):
            own, pure = _selected(script, each.test, call.scope)
            if own is not None and pure and not each.orelse:
                yield Guard(each, _OPPOSITE[own], call)


def levels(call: Call) -> Iterator[tuple[Block, list[ast.stmt]]]:
    """The blocks that lead to CALL, each with its statements."""
    for block in call.path:
        lists: list[list[ast.stmt]] = [getattr(block.owner, name, []) for name in ("body", "orelse", "finalbody")]
        inside = (each for each in lists if isinstance(each, list) and each)
        yield block, next((each for each in inside if _spans(each, call)), [])


def _spans(statements: list[ast.stmt], call: Call) -> bool:
    return statements[0].lineno <= call.node.lineno <= (statements[-1].end_lineno or 0)


def is_then(owner: ast.If, call: Call) -> bool:
    """Whether CALL stands in the first branch of OWNER."""
    return _spans(owner.body, call)


def selects(script: Script, test: ast.expr, scope: Scope) -> Who | None:
    """Which ranks TEST lets through; None when it does not ask for the rank, or all may pass."""
    return _selected(script, test, scope)[0]


def _selected(script: Script, test: ast.expr, scope: Scope, deep: int = 0) -> tuple[Who | None, bool]:
    """Which ranks pass, and whether all the others surely do not."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            numbered = isinstance(inner, ast.Name) and is_rank(script, inner, scope)  # if not rank
            who, pure = ("other", True) if numbered else _selected(script, inner, scope, deep)
            return (_OPPOSITE[who] if who is not None and pure else None), pure
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return _compared(script, left, op, right, scope), True
        case ast.BoolOp(op=op, values=values):
            return _combined(script, op, values, scope, deep)
        case ast.Name() | ast.Attribute() if deep < 3:
            return _named(script, test, scope, deep)
        case ast.Call(func=called):
            named: tuple[Who | None, bool] = ("main", True) if _MAIN.fullmatch(_last(called)) else (None, False)
            return _answered(script, called, scope, deep) or named
    return None, False


def _answered(script: Script, called: ast.expr, scope: Scope, deep: int) -> tuple[Who, bool] | None:
    """What a function or property of this file, that returns a test of the rank, answers."""
    own = script.trace.definition(called, scope) if deep < 3 else None
    if own is None or len(own.returns) != 1 or own.returns[0].node.value is None:
        return None
    who, pure = _selected(script, own.returns[0].node.value, own, deep + 1)
    return (who, pure) if who is not None else None


def _combined(
    script: Script, op: ast.boolop, values: list[ast.expr], scope: Scope, deep: int
) -> tuple[Who | None, bool]:
    """What is asked beside the rank counts only when it is more than whether there are several processes."""
    found: list[tuple[ast.expr, Who | None]] = [(each, _selected(script, each, scope, deep)[0]) for each in values]
    asked: list[Who] = []
    for _, each in found:
        if each is not None:
            asked.append(each)
    if not asked:
        return None, False
    pure = all(_SEVERAL.search(ast.unparse(each).lower()) for each, own in found if own is None)
    if pure or isinstance(op, ast.And):
        return asked[0], pure
    return None, pure


def _named(script: Script, test: ast.Name | ast.Attribute, scope: Scope, deep: int) -> tuple[Who | None, bool]:
    """A flag: by what it was given in this file, else by its name."""
    origins = script.trace.origins(test, scope)
    known = [each for each in origins if isinstance(each.node, ast.Compare | ast.UnaryOp | ast.Call)]
    for each in known:
        if each.node is not test and isinstance(each.node, ast.expr):
            who, pure = _selected(script, each.node, each.scope, deep + 1)
            if who is not None:
                return who, pure
    answer = (
        _answered(script, test, scope, deep) if isinstance(test, ast.Attribute) and not known else None
    )  # a property
    if answer is not None:
        return answer
    if known and not _MAIN.fullmatch(_last(test)):
        return None, False
    return ("main", True) if _MAIN.fullmatch(_last(test)) else (None, False)


def _compared(script: Script, left: ast.expr, op: ast.cmpop, right: ast.expr, scope: Scope) -> Who | None:
    if isinstance(op, ast.Eq | ast.NotEq) and is_rank(script, right, scope):
        left, right = right, left
    if not is_rank(script, left, scope):
        return None
    first = isinstance(op, ast.Eq | ast.Is | ast.In)
    match op, right:
        case (ast.Eq() | ast.Is() | ast.NotEq() | ast.IsNot(), ast.Constant(value=int(number))):
            return ("main" if first else "other") if number == 0 else "some"
        case (ast.Gt(), ast.Constant(value=0)) | (ast.GtE(), ast.Constant(value=1)):
            return "other"
        case (ast.Lt(), ast.Constant(value=1)) | (ast.LtE(), ast.Constant(value=0)):
            return "main"
        case (ast.In() | ast.NotIn(), ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts)):
            zero = any(isinstance(each, ast.Constant) and each.value == 0 for each in parts)
            return ("main" if first else "other") if zero else None
    return "some" if isinstance(op, ast.Eq) and _is_one_rank(right) else None


def _is_one_rank(node: ast.expr) -> bool:
    """Whether NODE is the number of one rank. In `for i in range(n): if i == rank`, i is that of each in its turn."""
    if isinstance(node, ast.BinOp):  # world_size - 1
        return isinstance(node.op, ast.Sub) and isinstance(node.right, ast.Constant)
    return bool(_ONE.fullmatch(_last(node).lower()))


def is_rank(script: Script, node: ast.expr, scope: Scope, deep: int = 0) -> bool:
    """Whether NODE is the number of this process."""
    match node:
        case ast.Name() | ast.Attribute():
            if _RANK.fullmatch(_last(node).lower()):
                return True
            return deep < 3 and any(
                isinstance(each.node, ast.Call) and is_rank(script, each.node, each.scope, deep + 1)
                for each in script.trace.origins(node, scope)
            )
        case ast.Call(func=ast.Name(id="int"), args=[inner]):
            return is_rank(script, inner, scope, deep)
        case ast.Call(func=called, args=arguments):
            return bool(_ASKED.fullmatch(_last(called))) or any(_is_variable(each) for each in arguments[:1])
        case ast.Subscript(slice=key):
            return _is_variable(key)
    return False


def _is_variable(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and bool(_VARIABLE.fullmatch(node.value))


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else dotted(node).rpartition(".")[2]
