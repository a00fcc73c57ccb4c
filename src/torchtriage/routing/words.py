"""Text as the ear hears it: words without case, accents and inflection, each with its place."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import lru_cache
from itertools import groupby
from typing import TypeAlias

_TOKEN = re.compile(
    r"(?P<times>(?<=\d)[xX×])"
    r"|(?P<number>\d+(?:[.,]\d+)*)"
    r"|(?P<word>[^\W\d_]+(?:['’][^\W\d_]+)?\d*|%)"
    r"|(?P<pause>[.!?;](?=\s|$)|\n\s*[\n*•|>-]|[-=]>|[→。！？；])"
)
PAUSE = ""
NUMBER = "#"
_COUNTS = frozenset({"two", "three", "four", "five", "six", "seven", "eight", "ten", "twelve", "sixteen"})
_VOWELS = frozenset("aeiouy")

Token: TypeAlias = tuple[str, int, int]
"""A word of a text: its form (folded, not stemmed; PAUSE at the end of a sentence), start and end."""


def tokens(text: str, start: int = 0, end: int = sys.maxsize) -> list[Token]:
    """One pass over text[start:end]; digits become NUMBER, every Chinese, Japanese or Korean sign is a word of its own.

    "1" stays what it is: one GPU is not several.
    """
    heard: list[Token] = []
    for found in _TOKEN.finditer(text, start, end):
        (first, last), word, kind = found.span(), found[0], found.lastgroup
        if kind == "word" and not word.isascii() and any(map(_stands_alone, word)):
            heard.extend(_apart(word, first))
        elif kind in ("word", "times"):
            heard.append((fold(word), first, last))
        else:
            heard.append((PAUSE if kind == "pause" else word if word == "1" else NUMBER, first, last))
    return heard


def _apart(word: str, start: int) -> Iterator[Token]:
    for _, group in groupby(enumerate(word, start), key=lambda each: each[0] if _stands_alone(each[1]) else -1):
        (first, sign), *rest = group
        yield fold(sign + "".join(more for _, more in rest)), first, first + 1 + len(rest)


def _stands_alone(sign: str) -> bool:
    """Chinese, Japanese and Korean signs; ranges this wide cost milliseconds to compile in a pattern."""
    return "\u3040" <= sign <= "\u30ff" or "\u3400" <= sign <= "\u9fff" or "\uac00" <= sign <= "\ud7af"


@lru_cache(maxsize=8192)
def fold(word: str) -> str:
    """Without case, accents, full-width forms and apostrophes; a counted number ("eight") is NUMBER."""
    if not word.isascii():
        from unicodedata import combining, normalize

        word = "".join(sign for sign in normalize("NFKD", word) if not combining(sign))
    plain = word.casefold().replace("'", "").replace("’", "")
    return NUMBER if plain in _COUNTS else plain


@lru_cache(maxsize=8192)
def stem(form: str) -> str:
    """Without plural, -ing, -ed and final e: training → train, losses → loss, saved → sav, save → sav."""
    if len(form) <= 3 or not form.isascii():
        return form
    form = _singular(form)
    for ending in ("ing", "ed"):
        rest = form.removesuffix(ending)
        if rest != form and len(rest) >= 3 and not form.endswith("eed") and _VOWELS & set(rest):
            form = rest[:-1] if rest[-1] == rest[-2] and rest[-1] not in "lsz" else rest
            break
    return form[:-1] if len(form) > 3 and form.endswith("e") else form


def _singular(form: str) -> str:
    if form.endswith(("sses", "xes", "ches", "shes")):
        return form[:-2]
    if form.endswith("ies") and len(form) > 4:
        return form[:-3] + "y"
    return form[:-1] if form.endswith("s") and not form.endswith(("ss", "us", "is")) else form
