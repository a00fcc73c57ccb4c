"""What a decoded message works out to: arithmetic over its figures, kept in the rooms' messages.py.

A function there is called as the signature is, with underscores; it takes the message and the text that it stands in
and returns the message with more fields or better words, or None where the figures say nothing more. A function of
that name with _in_source is called after it where the user gave source; it takes what examine read there as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec.structs import replace

from torchtriage.core.query import Decoded, Field

Meaning: TypeAlias = Callable[[Decoded, str], Decoded | None]


def told(message: Decoded, says: str, **fields: Field) -> Decoded:
    """MESSAGE with a sentence of its own and more fields; SAYS has no full stop."""
    return replace(message, says=says, fields={**message.fields, **fields})


def shape(message: Decoded, name: str) -> list[int] | None:
    """The field NAME where it is a shape."""
    value = message.fields.get(name)
    return [size for size in value if isinstance(size, int)] if isinstance(value, list) else None


def number(message: Decoded, name: str) -> float | None:
    """The field NAME where it is a number."""
    value = message.fields.get(name)
    return value if isinstance(value, (int, float)) else None
