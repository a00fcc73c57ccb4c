"""The first pass over a text: every phrase and message of the lexicon that stands in it, and where."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from itertools import accumulate

from msgspec import Struct

from torchtriage.routing.compiled import lexicon
from torchtriage.routing.lexicon import Layer, Lexicon
from torchtriage.routing.passages import LIMIT, Passage, passages
from torchtriage.routing.phrases import Spelling, longest, match, spell
from torchtriage.routing.signatures import Decoding, decode
from torchtriage.routing.words import PAUSE, Token, tokens

_CLAUSE = re.compile(r"[,;()\n。，；！？]|[.!?](?=\s|$)|\b(?:but|yet|still|although|however|while)\b", re.IGNORECASE)
CLAUSE = 120
APART = 10
EITHER = frozenset({"or", "nor"})


class Sound(Struct, frozen=True, gc=False):
    """One phrase at text[start:end]; name: the symptom's slug or the number of the row that it belongs to.

    first, last: its first and last word, counting only words that mean something.
    """

    layer: Layer
    name: str
    start: int
    end: int
    first: int
    last: int
    length: int


class Heard(Struct, frozen=True):
    """Everything heard in one text, in the order of the text.

    prose, code: the words of its passages; settings are in neither. passed_over: how many characters of a text that
    is too long were not listened to.
    """

    sounds: tuple[Sound, ...]
    decodings: tuple[Decoding, ...]
    prose: list[Token]
    code: list[Token]
    passed_over: int = 0

    def of(self, layer: Layer) -> list[Sound]:
        return [sound for sound in self.sounds if sound.layer == layer]


class Ground(Struct, frozen=True):
    """The places of many spans, asked in the time of a bisection.

    starts: in order. reach: for each of them the furthest end of a span that starts there or before.
    """

    starts: tuple[int, ...]
    reach: tuple[int, ...]

    @classmethod
    def of(cls, places: Iterable[tuple[int, int]]) -> Ground:
        """The ground that PLACES, each a start and an end, take up."""
        ordered = sorted(places)
        return cls(tuple(start for start, _ in ordered), tuple(accumulate((end for _, end in ordered), max)))

    def covers(self, start: int, end: int) -> bool:
        """Whether start..end lies within one of the spans."""
        before = bisect_right(self.starts, start)
        return before > 0 and self.reach[before - 1] >= end

    def touches(self, start: int, end: int) -> bool:
        """Whether start..end shares a sign with one of the spans."""
        before = bisect_left(self.starts, end)
        return before > 0 and self.reach[before - 1] > start


def taken_back(heard: Heard) -> dict[Sound, tuple[int, int]]:
    """Symptoms that are denied ("no NaN or hang") or over ("the OOM is gone", "we fixed the leak").

    Each with the place of the words that say so and its own.
    """
    denials = [sound for layer in ("not", "fixed-before") for sound in heard.of(layer)]
    endings = heard.of("fixed-after")
    if not denials and not endings:
        return {}
    before = {sound.last + 1: sound.start for sound in denials}
    after = {sound.first - 1: sound.end for sound in endings}
    either = [start for form, start, _ in heard.prose if form in EITHER]
    found: dict[Sound, tuple[int, int]] = {}
    last: Sound | None = None
    for sound in heard.of("symptom"):
        start, end = before.get(sound.first), after.get(sound.last)
        if last and last.last + 2 == sound.first and any(last.end <= place < sound.start for place in either):
            start = last.end
        if start is not None:
            found[sound], last = (start, sound.end), sound
        elif end is not None:
            found[sound] = (sound.start, end)
    return found


@lru_cache(maxsize=1)
def hear(text: str) -> Heard:
    """Every phrase and error message in TEXT; the words of a message are not heard a second time as phrases.

    Error messages are looked for in the whole text, phrases in its passages.
    """
    known, parts = lexicon(), passages(text)
    decodings = tuple(decode(text, known.signatures, known.anchors))
    messages = Ground.of((each.decoded.start, each.decoded.end) for each in decodings)
    prose, code, settings = (_tokens(text, parts, kind) for kind in ("prose", "code", "setting"))
    sounds = sorted(
        _sounds(prose, [*code, *settings], known), key=lambda each: (each.start, each.end, each.layer, each.name)
    )
    passed_over = len(text) - sum(part.end - part.start for part in parts) if len(text) > LIMIT else 0
    kept = tuple(each for each in sounds if not messages.covers(each.start, each.end))
    return Heard(kept, decodings, prose, code, passed_over)


def _sounds(prose: list[Token], code: list[Token], known: Lexicon) -> Iterator[Sound]:
    """Of code and settings only what names a subject: `torch.isnan(x)` is no NaN."""
    yield from _matched(prose, known, 0)
    for sound in _matched(code, known, len(prose) + APART):
        if sound.layer == "symptom" and known.symptoms[sound.name].read:
            yield sound


def _tokens(text: str, parts: Iterable[Passage], kind: str) -> list[Token]:
    found: list[Token] = []
    for part in parts:
        if part.kind == kind:
            found += tokens(text, part.start, part.end)
            found.append((PAUSE, part.end, part.end))
    return found


@cache
def _spellings() -> dict[str, Spelling]:
    """What has been spelled with the lexicon: the words of a language come again and again."""
    return {}


def _matched(found: list[Token], known: Lexicon, count: int) -> Iterator[Sound]:
    """COUNT: the place of the first word."""
    spelled = spell(found, known.trie, known.vocabulary, _spellings())
    place = []
    for symbols in spelled:
        place.append(count)
        count += symbols is not None
    for hit in longest(match(spelled, known.trie), known.swallows):
        meaning, (first, *_), last = known.meanings[hit.meaning], hit.words, hit.words[-1]
        yield Sound(
            meaning.layer, meaning.name, found[first][1], found[last][2], place[first], place[last], len(hit.words)
        )


def clause_end(text: str, start: int) -> int:
    """Where the clause that reaches START ends: at a comma, a full stop, a "but", or after CLAUSE characters."""
    limit = min(len(text), start + CLAUSE)
    found = _CLAUSE.search(text, start, limit)
    end = found.start() if found else limit
    return start + len(text[start:end].rstrip())
