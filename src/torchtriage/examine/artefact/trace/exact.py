"""Events read one by one, for text that is not as Kineto writes it: slower, and nothing in it goes unsaid."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any

from torchtriage.examine.artefact.trace.events import Odd

LARGEST = 2**52 * 1000
"""Nanoseconds that a time may have: with it any sum of two stays within 64 bits. It is 142 years."""
_BETWEEN = re.compile(r"[\s,]*")
_DIGITS = 64


class _Number(str):
    """A number as it stands in the text."""

    __slots__ = ()


@dataclass
class Exact:
    """What the text holds. ended: where in it reading failed, in bytes; rest: what follows the end of the list."""

    events: list[dict[str, Any]] = field(default_factory=list)
    ended: int | None = None
    rest: bytes = b""
    closed: bool = False


def exact(text: bytes, odd: Odd) -> Exact:
    """Events up to the end of TEXT, the end of the list, or the first thing that is no JSON."""
    told, at, found = text.decode("utf-8", "replace"), 0, Exact()
    decoder = json.JSONDecoder(
        object_pairs_hook=lambda pairs: _pairs(pairs, odd),
        parse_float=_Number,
        parse_int=_Number,
        parse_constant=_Number,
    )
    while True:
        between = _BETWEEN.match(told, at)
        at = between.end() if between else at
        if told[at : at + 1] == "]":
            found.closed, found.rest = True, told[at:].encode("utf-8", "replace")
            return found
        if at == len(told):
            return found
        try:
            event, at = decoder.raw_decode(told, at)
        except (ValueError, RecursionError):
            found.ended = len(told[:at].encode("utf-8", "replace"))
            return found
        if isinstance(event, dict):
            found.events.append(event)
        else:
            odd.add("values in the list that are no events")


def _pairs(pairs: list[tuple[str, Any]], odd: Odd) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        odd.add("objects that name a key twice (the last value counts)")
    return made


def nanoseconds(value: Any) -> int | None:
    """Microseconds as they stand in the text in whole nanoseconds, a half to the even one; None for what is no time."""
    if not isinstance(value, _Number) or len(value) > _DIGITS:
        return None
    try:
        exactly = Decimal(value)
        if not exactly.is_finite() or abs(exactly) * 1000 > LARGEST:
            return None
        return int((exactly * 1000).to_integral_value())
    except (InvalidOperation, OverflowError):
        return None


def whole(value: Any, other: int = -1) -> int:
    """A whole number of at most 18 digits; OTHER for anything else."""
    if isinstance(value, _Number) and len(value) <= 18 and value.lstrip("-").isdecimal():
        return int(value)
    return other


def identity(value: Any) -> int | str:
    """What names a process or thread: a number where it is one."""
    if isinstance(value, _Number):
        return whole(value, 0) if "." not in value else str(value)[:_DIGITS]
    return value if isinstance(value, str) else 0
