"""Error messages taken apart: a literal prefilter, then the pattern, compiled when it is first needed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TypeAlias

from msgspec import Struct

from torchtriage.catalog.symptom import Signature
from torchtriage.core.query import Decoded

Field: TypeAlias = str | int | float | list[int]
WINDOW = 1500
MOST = 3
DIGITS = 18
_NUMBER = re.compile(rf"\d{{1,{DIGITS}}}")


class Decoding(Struct, frozen=True):
    """A message and the symptom that it says."""

    symptom: str
    decoded: Decoded


def decode(text: str, signatures: Iterable[tuple[str, Signature]]) -> list[Decoding]:
    """The messages in TEXT, in the order in which they stand; (symptom, signature) pairs to look for.

    Of each signature the first MOST; a pattern sees at most WINDOW characters before and after its literal.
    """
    lower = _lower(text)
    found = [
        Decoding(symptom, decoded)
        for symptom, signature in signatures
        if signature.contains in lower
        for decoded in _readings(text, lower, signature)
    ]
    return sorted(found, key=lambda each: (each.decoded.start, -each.decoded.end, each.decoded.signature))


def _lower(text: str) -> str:
    """Lower case, sign by sign, so that positions hold ("İ".lower() is two signs long)."""
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(sign.lower() if len(sign.lower()) == 1 else sign for sign in text)


def _readings(text: str, lower: str, signature: Signature) -> Iterator[Decoded]:
    pattern, at = _compiled(signature.pattern), 0
    for _ in range(MOST):
        if (literal := lower.find(signature.contains, at)) < 0:
            return
        at = literal + len(signature.contains)
        if found := _around(pattern, text, literal, at):
            at = max(at, found.end())
            fields = {name: _field(signature.fields.get(name, "text"), value) for name, value in _groups(found)}
            yield Decoded(found.start(), found.end(), found.group(), signature=signature.name, fields=fields,
                          faults=signature.faults, says=signature.says)  # fmt: skip


def _around(pattern: re.Pattern[str], text: str, start: int, end: int) -> re.Match[str] | None:
    """The match that shares signs with the literal at text[start:end]."""
    nearby = pattern.finditer(text, max(0, start - WINDOW), end + WINDOW)
    return next((found for found in nearby if found.start() < end and found.end() > start), None)


def _groups(found: re.Match[str]) -> list[tuple[str, str]]:
    return [(name, value) for name, value in found.groupdict().items() if value is not None]


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


def _field(kind: str, value: str) -> Field:
    match kind:
        case "int":
            return int(value[:DIGITS])
        case "float":
            return float(value[:DIGITS])
        case "shape":
            return [int(digits) for digits in _NUMBER.findall(value)]
        case _:
            return value
