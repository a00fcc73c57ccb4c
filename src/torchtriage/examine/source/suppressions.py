"""Comments that silence a finding where it stands: # torchtriage: ignore[slug] because …"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from contextlib import suppress

from msgspec import Struct

from torchtriage.core.evidence import Evidence, Inconclusive
from torchtriage.examine.source.text import Text

_MARK = b"torchtriage:"
_COMMENT = re.compile(r"#\s*torchtriage:\s*ignore\[([^\]]*)\]\s*(.*)", re.IGNORECASE)
_CALLED = re.compile(r"#\s*torchtriage:", re.IGNORECASE)
_REASON = re.compile(r"because\s+\S", re.IGNORECASE)
FORM = "# torchtriage: ignore[SLUG] because …"


class Suppression(Struct, frozen=True):
    """One comment. covers: the lines of the text that it speaks of. wrong: what is wrong with it; "" for nothing."""

    line: int
    covers: frozenset[int]
    slugs: frozenset[str]
    wrong: str = ""


def suppressions(text: Text) -> tuple[Suppression, ...]:
    """The comments of TEXT; without the mark in its bytes nothing is read."""
    if _MARK not in text.data:
        return ()
    return tuple(_read(text))


def applied(text: Text, evidence: Iterable[Evidence]) -> tuple[tuple[Evidence, ...], tuple[Inconclusive, ...]]:
    """EVIDENCE without what a comment with a reason silences; then the comments without a reason or an effect."""
    given = suppressions(text)
    if not given:
        return tuple(evidence), ()
    used: set[tuple[int, str]] = set()
    kept = []
    for item in evidence:
        slug, line = item.detector.partition("/")[2], text.whole(item.place.cell, item.place.line or 1)
        mine = [each for each in given if not each.wrong and slug in each.slugs and line in each.covers]
        used.update((each.line, slug) for each in mine)
        if not mine:
            kept.append(item)
    return tuple(kept), tuple(_complaints(text, given, used))


def _complaints(text: Text, given: Iterable[Suppression], used: set[tuple[int, str]]) -> Iterator[Inconclusive]:
    for each in given:
        cell, line = text.spot(each.line)
        where = f"{text.path}:{line}" + (f", cell {cell}" if cell is not None else "")
        if each.wrong:
            yield Inconclusive("source/suppression", f"{where}: {each.wrong}, so it silences nothing", f"Write {FORM}.")
            continue
        for slug in sorted(each.slugs - {name for line_, name in used if line_ == each.line}):
            yield Inconclusive(
                "source/suppression", f"{where}: nothing of {slug} is found here to be silenced", "Take it out."
            )


def _read(text: Text) -> Iterator[Suppression]:
    """A comment on a line of its own speaks of the next statement's first line, any other of its own statement."""
    pending: list[tuple[int, str]] = []
    start: int | None = None
    inside: list[tuple[int, str]] = []
    covers: frozenset[int] = frozenset()
    is_decorator = False
    with suppress(tokenize.TokenError, SyntaxError, IndentationError):
        for token in tokenize.tokenize(io.BytesIO(text.data).readline):
            if token.type == tokenize.COMMENT:
                (pending if start is None else inside).append((token.start[0], token.string))
            elif token.type == tokenize.NEWLINE and start is not None:
                covers |= frozenset(range(start, token.start[0] + 1))
                start = None
                if not is_decorator:  # what is said of a decorated function is said above its decorators
                    yield from _made([*pending, *inside], covers)
                    pending, inside, covers = [], [], frozenset()
            elif start is None and token.type not in _EMPTY:
                start, is_decorator = token.start[0], token.string == "@"
    yield from _made([*pending, *inside], frozenset())


_EMPTY = frozenset({tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING, tokenize.ENDMARKER})


def _made(comments: Iterable[tuple[int, str]], covers: frozenset[int]) -> Iterator[Suppression]:
    for line, comment in comments:
        found = _COMMENT.search(comment)
        if found is None:
            if _CALLED.search(comment):
                yield Suppression(line, covers, frozenset(), "the comment is not understood")
            continue
        slugs = frozenset(slug.strip() for slug in found.group(1).split(",") if slug.strip())
        wrong = "" if slugs else "the suppression names no fault"
        wrong = wrong or ("" if _REASON.match(found.group(2)) else "the suppression has no reason")
        yield Suppression(line, covers, slugs, wrong)
