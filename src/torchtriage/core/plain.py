"""Nouns as plain JSON values, and the number of their shape."""

from __future__ import annotations

import re
from math import isfinite
from typing import Any

import msgspec

SCHEMA = 1

# A terminal may act on these even inside a JSON string; nowhere else do they stand, and \\uXXXX says the same.
_LOUD = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
# A file name that is not Unicode reaches Python with lone surrogates, which no JSON can hold.
_SURROGATE = re.compile("[\ud800-\udfff]")


def plain(value: Any) -> Any:
    """VALUE as JSON values: nan, inf and -inf become strings, what is no Unicode becomes U+FFFD."""
    return _spell(msgspec.to_builtins(value, str_keys=True))


def number(value: Any) -> float | None:
    """VALUE as a number; the strings that stand for nan and the infinities count, truth values do not."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    return float(value) if value in ("nan", "inf", "-inf") else None


def within(values: Any, *names: str) -> Any:
    """What stands below NAMES in nested objects, or None."""
    for name in names:
        values = values.get(name) if isinstance(values, dict) else None
    return values


def row(value: Any) -> str:
    """VALUE as JSON on one line, safe to print and to embed."""
    return _LOUD.sub(lambda found: f"\\u{ord(found[0]):04x}", msgspec.json.encode(plain(value)).decode())


def quick(value: Any) -> str:
    """What `row` says, for a VALUE whose numbers are all finite: in a third of the time."""
    try:
        return _LOUD.sub(lambda found: f"\\u{ord(found[0]):04x}", msgspec.json.encode(value).decode())
    except UnicodeEncodeError:
        return row(value)


def written(value: Any) -> str:
    """VALUE as indented JSON with a line end; the same value gives the same text."""
    return msgspec.json.format(row(value), indent=2) + "\n"


def _spell(value: Any) -> Any:
    match value:
        case str():
            return value if value.isascii() else _SURROGATE.sub("\ufffd", value)
        case float() if not isfinite(value):
            return str(value)
        case dict():
            return {_spell(key): _spell(item) for key, item in value.items()}
        case list() | tuple():
            return [_spell(item) for item in value]
        case _:
            return value
