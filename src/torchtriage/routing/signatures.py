"""Error messages taken apart: a literal prefilter, then the pattern, compiled when it is first needed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache

from msgspec import Struct

from torchtriage.catalog.symptom import Signature
from torchtriage.core.query import Decoded, Field

WINDOW = 1500
MOST = 3
DIGITS = 18
_LONG = re.compile("[a-z_]{5,}")
_WRAPPED = re.compile(r"(?<=[^\n]{60})\n(?=[^\s])")
"""Where a terminal, or what prints in boxes, may have begun a new line: after sixty characters or more."""
_NUMBER = re.compile(rf"\d{{1,{DIGITS}}}")


class Decoding(Struct, frozen=True):
    """A message and the symptom that it says."""

    symptom: str
    decoded: Decoded


class Anchor(Struct, frozen=True, array_like=True):
    """A word that stands in the literals of several signatures, and their numbers."""

    word: str
    numbers: tuple[int, ...]


def anchors(signatures: Sequence[tuple[str, Signature]]) -> tuple[Anchor, ...]:
    """Few words of which one stands in every literal: a text without any of them holds no message.

    Greedy: always the word that stands in most of the literals that are left; a literal without a long word is its
    own anchor.
    """
    left = [(number, literal) for number, (_, signature) in enumerate(signatures) for literal in signature.literals]
    found = []
    while left:
        words = Counter(word for _, literal in left for word in {*_LONG.findall(literal), literal})
        word = max(words, key=lambda each: (words[each], len(each), each))
        numbers = dict.fromkeys(number for number, literal in left if word in literal)
        found.append(Anchor(word, tuple(numbers)))
        left = [(number, literal) for number, literal in left if word not in literal]
    return tuple(found)


def decode(
    text: str, signatures: Sequence[tuple[str, Signature]], anchored: Iterable[Anchor] | None = None
) -> list[Decoding]:
    """The messages in TEXT, in the order in which they stand; (symptom, signature) pairs to look for.

    Of each signature and literal the first MOST; a pattern sees at most WINDOW characters before and after its
    literal. Where a terminal has wrapped a message, its lines are read as one.
    """
    given = anchors(signatures) if anchored is None else anchored
    found = {(each.decoded.signature, each.decoded.start): each for each in _decoded(text, text, signatures, given)}
    if (unwrapped := _WRAPPED.sub(" ", text)) != text:
        known = {each.decoded.signature for each in found.values()}
        for each in _decoded(text, unwrapped, signatures, given):
            key = (each.decoded.signature, each.decoded.start)
            shorter = found.get(key)
            if each.decoded.signature not in known or (shorter and shorter.decoded.end < each.decoded.end):
                found[key] = each
    return sorted(found.values(), key=lambda each: (each.decoded.start, -each.decoded.end, each.decoded.signature))


def _decoded(
    text: str, as_read: str, signatures: Sequence[tuple[str, Signature]], anchored: Iterable[Anchor]
) -> Iterator[Decoding]:
    """AS_READ: TEXT, sign for sign, with the ends of lines as it is to be read."""
    lower = _lower(as_read)
    near = dict.fromkeys(number for anchor in anchored if anchor.word in lower for number in anchor.numbers)
    for symptom, signature in (signatures[number] for number in near):
        for literal in signature.literals:
            if literal in lower:
                for decoded in _readings(text, as_read, lower, signature, literal):
                    yield Decoding(symptom, decoded)


def _lower(text: str) -> str:
    """Lower case, sign by sign, so that positions hold ("İ".lower() is two signs long)."""
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(sign.lower() if len(sign.lower()) == 1 else sign for sign in text)


def _readings(text: str, as_read: str, lower: str, signature: Signature, literal: str) -> Iterator[Decoded]:
    pattern, at = _compiled(signature.pattern), 0
    for _ in range(MOST):
        if (start := lower.find(literal, at)) < 0:
            return
        at = start + len(literal)
        if found := _around(pattern, as_read, start, at):
            at = max(at, found.end())
            fields = {name: _field(signature.fields.get(name, "text"), value) for name, value in _groups(found)}
            yield Decoded(found.start(), found.end(), text[found.start() : found.end()], signature=signature.name,
                          fields=fields, faults=signature.faults, says=signature.says)  # fmt: skip


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
    """VALUE as KIND; as it stands where it only looks like a number ("1.2.3")."""
    match kind:
        case "int":
            return int(value[:DIGITS])
        case "float":
            with suppress(ValueError):
                return float(value[:DIGITS])
            return value
        case "shape":
            return [int(digits) for digits in _NUMBER.findall(value)]
        case _:
            return value
