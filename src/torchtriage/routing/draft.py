"""Reads a draft answer for half answers (red flags) and for excuses to skip the diagnosis (rationalisations)."""

from __future__ import annotations

from functools import cache

from msgspec import Struct
from msgspec.structs import replace

from torchtriage.catalog.cache import compiled
from torchtriage.core.query import PressureKind, Span
from torchtriage.routing import tables
from torchtriage.routing.phrases import Hit, Trie, Vocabulary, compile_phrases, match, spell
from torchtriage.routing.words import Token, tokens


class Flag(Span, frozen=True, kw_only=True):
    """A passage of a draft at which to stop.

    name: of the red flag, or the pressure that the excuse gives in to. specialist: to whom the matter goes; None for
    an excuse, which goes to whomever the route names. sentence: why, and what to do instead.
    """

    name: str
    specialist: str | None
    sentence: str


class RedFlagRow(tables.Row, frozen=True):
    """A draft answer that is about to give half an answer. complete: what a whole answer speaks of, all of it."""

    name: str
    specialist: str
    phrases: tuple[str, ...]
    because: str
    complete: tuple[str, ...]


class RedFlags(tables.Row, frozen=True):
    """redflags.toml."""

    flag: tuple[RedFlagRow, ...]


class DraftLexicon(Struct, frozen=True):
    """What is listened for in drafts. The trie numbers first all flags, then all excuses, then what completes a flag.

    completing: for each number of the last kind, the number of its flag.
    """

    vocabulary: Vocabulary
    trie: Trie
    flags: tuple[RedFlagRow, ...]
    excuses: tuple[tables.PressureRow, ...]
    completing: dict[int, int]


def review(text: str) -> tuple[Flag, ...]:
    """The red flags and excuses in a draft answer, in the order of the text, none upon another of its name."""
    known = _lexicon()
    found = list(tokens(text))
    hits = list(match(spell(found, known.trie, known.vocabulary), known.trie))
    whole = _whole({hit.meaning for hit in hits}, known)
    flags = [_flag(hit, text, found, known) for hit in hits if hit.meaning not in known.completing]
    kept: list[Flag] = []
    ended: dict[str, int] = {}
    for flag in sorted(flags, key=lambda each: (each.start, -each.end, each.name)):
        if flag.start >= ended.get(flag.name, 0) and flag.name not in whole:
            ended[flag.name] = flag.end
            kept.append(flag)
    return tuple(kept)


def _whole(heard: set[int], known: DraftLexicon) -> set[str]:
    """The names of the flags of which the draft speaks in full."""
    missing = {flag for number, flag in known.completing.items() if number not in heard}
    return {row.name for number, row in enumerate(known.flags) if number not in missing}


def _flag(hit: Hit, text: str, found: list[Token], known: DraftLexicon) -> Flag:
    start, end = found[hit.words[0]][1], found[hit.words[-1]][2]
    if hit.meaning < len(known.flags):
        row = known.flags[hit.meaning]
        return Flag(start, end, text[start:end], name=row.name, specialist=row.specialist, sentence=row.because)
    excuse = known.excuses[hit.meaning - len(known.flags)]
    kind: PressureKind = excuse.kind
    return Flag(start, end, text[start:end], name=kind.value, specialist=None, sentence=excuse.answer)


@cache
def _lexicon() -> DraftLexicon:
    return compiled("draft", tables.files(), DraftLexicon, _made)


def _made() -> DraftLexicon:
    from torchtriage.routing import build  # tomllib is needed only when a table has changed

    flags = build.read("redflags", RedFlags).flag
    excuses = build.read("pressures", build.Pressures).pressure
    parts = [(number, phrase) for number, row in enumerate(flags) for phrase in row.complete]
    known = build.vocabulary(build.read("words", build.Words))
    phrases = [*(row.phrases for row in flags), *(row.drafts for row in excuses), *((phrase,) for _, phrase in parts)]
    return DraftLexicon(
        vocabulary=known,
        trie=compile_phrases(phrases, known),
        flags=tuple(replace(row, phrases=(), complete=()) for row in flags),
        excuses=tuple(replace(row, phrases=(), drafts=()) for row in excuses),
        completing={len(flags) + len(excuses) + at: flag for at, (flag, _) in enumerate(parts)},
    )
