"""What differs among the ranks of a job, and which of them a condition lets through."""

from __future__ import annotations

import ast
import re
from functools import cache
from typing import Literal, NamedTuple

from torchtriage.examine.source.execution.lore import lore
from torchtriage.examine.source.execution.values import Condition, Unknown, Value

Certainty = Literal["rank", "named", "open"]
_RANK = re.compile(
    r"_?(?:(?:local|global|world|node|dist|ddp|my|cur|current|process)_?)?rank(?:_?id)?|process_index", re.IGNORECASE
)
_MAIN = re.compile(
    r"_?(?:is_?|am_?)?(?:on_?)?(?:local_|global_|dist_|world_)?"
    r"(?:(?:main|master|primary|chief|leader|root)(?:_?(?:process|proc|node|worker|rank|gpu))"
    r"|rank_?(?:0|zero)|global_zero|process_zero)|_?(?:is|am)_?(?:main|master|primary|chief|leader|root)",
    re.IGNORECASE,
)
_ASKED = re.compile(r"_?get_(?:(?:local|global|world|node|dist)_)?rank")
_VARIABLE = re.compile(r"(?:LOCAL_|SLURM_|OMPI_COMM_WORLD_|GROUP_|PMI_)?(?:RANK|PROCID|LOCALID)")
_ALONE = re.compile(r"_?(?:on_?)?(?:run_?on_?)?(?:rank_?(?:zero|0)|(?:main|master)_(?:process|rank|only))(?:_only)?")
"""Decorators after which the first rank alone runs a function."""
_TOLD = re.compile(r"main|master|rank|primary|chief|zero|local", re.IGNORECASE)
"""What conditions on the rank are called where they come from code that is not executed."""
_WORLD = re.compile(r"world_size(\(\))?\s*[<>=!]|\bw ==|!= -1|> -1|>= 0|is_initialized")
"""Conditions that come out alike on every rank, though the rank stands in them: whether there are several."""
_SEVERAL = re.compile(r"dist|world|parallel|multi|gpus|initialized|available|(?:is_|use_)?(?:ddp|fsdp)$", re.IGNORECASE)
"""What is asked beside the rank: whether there are several processes at all."""


class Guard(NamedTuple):
    """A condition that stands around an event: its line, the way that was taken, and under how many calls.

    certainty: "rank" where some ranks surely stay away, "named" where its words say so, "open" where it comes from code
    that is not executed, and may be a condition on the rank.
    """

    line: int
    way: bool
    depth: int
    certainty: Certainty


def is_of_rank(value: Value) -> bool:
    """Whether VALUE is known to differ among the ranks."""
    return isinstance(value, Unknown) and value.is_of_rank


@cache
def names_rank(word: str) -> bool:
    """Whether WORD, the name of what comes from code out of sight, is that of a rank: args.local_rank, get_rank."""
    return any(each.fullmatch(word) for each in (_RANK, _MAIN, _ASKED))


def is_rank_variable(name: str) -> bool:
    """Whether the variable NAME of the environment tells a process its rank."""
    return _VARIABLE.fullmatch(name) is not None


def certainty_of_decorator(name: str) -> Certainty | None:
    """How sure it is that the decorator NAME, of a package, lets some ranks alone run a function."""
    if _ALONE.fullmatch(name.rpartition(".")[2]):
        return "rank"
    return (
        None if name.partition(".")[0] in lore()["harmless"]["decorating"] + lore()["harmless"]["packages"] else "open"
    )


def certainty_of(found: Value, way: bool, test: ast.expr) -> Certainty | None:
    """How sure it is that only some ranks go the WAY of TEST, which came to FOUND; None: all of them do."""
    if not isinstance(found, Unknown):
        return None
    text = ast.unparse(test)
    if isinstance(test, ast.BoolOp) and found.is_of_rank:  # not is_initialized() or get_rank() == 0
        others = [each for each in map(ast.unparse, test.values) if not _WORLD.search(each)]
        if others and len(others) < len(test.values) and way is isinstance(test.op, ast.Or):
            return "rank"
    if _WORLD.search(text) or _asks_for_any(found):
        return None
    if found.is_of_rank:
        return "rank" if _holds_back(found, way) else "named"
    if _TOLD.search(text):
        return "named"
    return "open" if _is_told(found, test) else None


def _holds_back(value: Value, way: bool) -> bool:
    """Whether some ranks cannot go the WAY of the condition VALUE, whatever else it asks for."""
    if not isinstance(value, Condition) or (value.op == "is" and not _asks_for_any(value)):
        return isinstance(value, Unknown) and (value.is_of_rank or _SEVERAL.search(value.why) is not None)
    if _asks_for_any(value):
        return False
    if value.op == "not":
        return _holds_back(value.parts[0], not way)
    found = [_holds_back(each, way) for each in value.parts]
    return any(found) if (value.op == "and") is way else all(found)


def _asks_for_any(value: Value) -> bool:
    """Whether VALUE only asks whether there is a rank: `rank is not None`."""
    return isinstance(value, Condition) and not value.is_of_rank and any(map(is_of_rank, value.parts))


def _is_told(value: Unknown, test: ast.expr) -> bool:
    """Whether a caller, or a function that is not executed, decides: `if this_one_writes(args)`, `if logger`."""
    while isinstance(value, Condition) and value.parts and isinstance(value.parts[0], Unknown):
        value = value.parts[0]
    while isinstance(test, ast.UnaryOp | ast.Compare):
        test = test.operand if isinstance(test, ast.UnaryOp) else test.left
    if isinstance(test, ast.Call) and value.why in lore()["harmless"]["methods"]:  # if path.exists()
        return False
    if isinstance(test, ast.Call):
        return value.why.partition(".")[0] not in lore()["harmless"]["packages"]
    return isinstance(test, ast.Name) and value.why.removeprefix("--") == test.id
