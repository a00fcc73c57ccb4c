"""What can run after what: branches exclude each other, and a return, break or continue cuts the way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from torchtriage.examine.source.facts import Block

_CONDITIONAL = frozenset({"arm", "loop", "handler"})


class Spot(Protocol):
    """A point of the program: the blocks that lead to it and its turn among all evaluations."""

    @property
    def path(self) -> tuple[Block, ...]: ...
    @property
    def order(self) -> int: ...


S = TypeVar("S", bound=Spot)


def shared(one: Spot, other: Spot) -> int:
    """How many blocks both points stand in."""
    count = 0
    for here, there in zip(one.path, other.path, strict=False):
        if here is not there:
            break
        count += 1
    return count


def reaches(first: Spot, then: Spot) -> bool:
    """Whether one pass of the code can go through FIRST and later through THEN; loops are not gone round."""
    if first.order >= then.order:
        return False
    common = shared(first, then)
    if _exclusive(first.path[common:], then.path[common:]):
        return False
    return not _leaves(first.path, common)


def surely(first: Spot, then: Spot) -> bool:
    """Whether every way to THEN has gone through FIRST before."""
    if not reaches(first, then):
        return False
    return not any(block.kind in _CONDITIONAL for block in first.path[shared(first, then) :])


def reaching(stores: Iterable[S], use: Spot) -> list[S]:
    """Those of STORES, all to one name, whose value USE may see, the latest first; earlier turns of a loop included."""
    stores = sorted(stores, key=lambda store: store.order)
    found: list[S] = []
    base: S | None = None
    for store in reversed([each for each in stores if reaches(each, use)]):
        found.append(store)
        if surely(store, use):
            base = store
            break
    fresh = base.path if base is not None else ()
    later = (each for each in stores if each.order >= use.order)
    return [*found, *(each for each in later if _carried(each, use, fresh))]


def _carried(store: Spot, use: Spot, fresh: Sequence[Block]) -> bool:
    """Whether a loop goes round both points without passing what stands in the blocks FRESH."""
    around = store.path[: shared(store, use)]
    return any(block.kind == "loop" and block not in fresh for block in around)


def loops(path: Sequence[Block]) -> list[Block]:
    """The loops of PATH, from the innermost outwards."""
    return [block for block in reversed(path) if block.kind == "loop"]


def _exclusive(here: Sequence[Block], there: Sequence[Block]) -> bool:
    if not here or not there:
        return False
    alike = here[0].kind == there[0].kind and here[0].kind in ("arm", "handler")
    return alike and here[0].owner is there[0].owner


def _leaves(path: Sequence[Block], common: int) -> bool:
    """Whether the way from PATH's end back to its first COMMON blocks is cut by a return, break or continue."""
    for depth in range(common, len(path)):
        block = path[depth]
        if block.kind == "body":  # a function called from here: what leaves it comes back here
            return False
        if block.leaves == "function":
            return True
        if block.leaves == "loop" and not any(inner.kind == "loop" for inner in path[common : depth + 1]):
            return True
    return False
