"""The terms that a loss is the sum of."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from msgspec.structs import replace

from torchtriage.examine.source.flow import reaching
from torchtriage.specialists.custom_autograd_functions.rules.following import DEEP, Follower, Point


class Terms(Follower):
    """Takes a loss apart, through names and functions of the same file."""

    def terms(self, spot: Point) -> Iterator[Point]:
        """The terms that the loss SPOT is the sum of, through names and functions of this file."""
        match spot.node:
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                yield from self.terms(spot.of(left))
                yield from self.terms(spot.of(right))
            case ast.BinOp(left=left, op=ast.Mult(), right=right) if spot.deep < DEEP - 6:
                sums = [
                    each for each in (left, right) if isinstance(each, ast.BinOp | ast.Call | ast.Name | ast.Subscript)
                ]
                weights = [each for each in (left, right) if not any(True for _ in self.ways(spot.of(each)))]
                rest = [each for each in sums if each not in weights]
                yield from self.terms(spot.of(rest[0])) if len(rest) == 1 and weights else (spot,)
            case ast.Name(id=name) if spot.deep < DEEP - 6:
                yield from self._terms_of_name(name, spot)
            case ast.Call() if spot.deep < DEEP - 6 and (own := self._own(spot.node, spot)) is not None:
                ends = list(self._ends(own, spot.node, spot))
                yield from self.terms(ends[0]) if len(ends) == 1 else (spot,)
            case _:
                yield spot

    def _terms_of_name(self, name: str, spot: Point) -> Iterator[Point]:
        """The terms of NAME: of what it was given, and of all that is added to it."""
        stores = reaching(self._stores(name, spot.scope), spot.at)
        plain = all(each.how in ("assign", "augment") and each.index is None for each in stores)
        if not stores or not plain or any(each.order > spot.at.order for each in stores):
            given = dict(spot.given).get(name)
            yield given if given is not None and all(each.how == "parameter" for each in stores) else spot
            return
        for store in stores:
            if store.value is None:
                continue
            names_itself = any(isinstance(each, ast.Name) and each.id == name for each in ast.walk(store.value))
            inner = replace(spot, node=store.value, at=store, deep=spot.deep + (1 if store.how == "augment" else 3))
            yield from self.terms(inner) if not names_itself or spot.deep < DEEP // 2 else ()
