"""At least one: the type that lets a constructor, mypy and pyright refuse an empty tuple."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, TypeAlias, TypeVar

from msgspec import Meta

T = TypeVar("T")

if TYPE_CHECKING:
    Some: TypeAlias = tuple[T, *tuple[T, ...]]
else:  # msgspec cannot decode an unpacked tuple; the length is checked instead
    Some = Annotated[tuple[T, ...], Meta(min_length=1)]


def some(items: Iterable[T], what: str) -> Some[T]:
    """The one door from "any number" to "at least one"; raises ValueError naming WHAT is missing."""
    match tuple(items):
        case (first, *rest):
            return (first, *rest)
        case _:
            raise ValueError(f"no {what}: at least one is needed")
