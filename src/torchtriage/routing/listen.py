"""Words become a query: symptoms, claims, pressures and error messages, each with its span."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import takewhile
from typing import TypeVar

from msgspec.structs import replace

from torchtriage.core.query import Claim, Mention, Pressure, Query, Span
from torchtriage.routing.compiled import lexicon
from torchtriage.routing.gist import gist
from torchtriage.routing.hear import Ground, Heard, Sound, clause_end, hear, taken_back
from torchtriage.routing.leaning import lean
from torchtriage.routing.lexicon import Lexicon

MOST = 5
S = TypeVar("S", bound=Span)


def listen(text: str) -> Query:
    """What the user says, heard, and where the words as a whole lean."""
    query = attend(text)
    return replace(query, leaning=lean(gist(query)))


def attend(text: str) -> Query:
    """What the user says, heard: nothing in TEXT is taken for a fact, and nothing of it is lost.

    The first MOST mentions of a thing are kept; a log may repeat it a thousand times.
    """
    heard, known = hear(text), lexicon()
    mentions = _kept(_mentions(heard, known, text), lambda mention: mention.symptom)
    claims = _widest(_claims(heard, known, text))
    # A claim that was dropped would leave the symptom in it standing as if it had been seen.
    mentioned = Ground.of((each.start, each.end) for each in mentions)
    about = [claim for claim in claims if mentioned.touches(claim.start, claim.end)]
    return Query(
        text=text,
        symptoms=mentions,
        claims=tuple(
            sorted(
                {*about, *_kept(claims, lambda claim: claim.kind)},
                key=lambda claim: (claim.start, claim.end, claim.kind.value),
            )
        ),
        pressures=_kept(_pressures(heard, known, text), lambda pressure: pressure.kind),
        decoded=tuple(decoding.decoded for decoding in heard.decodings),
        passed_over=heard.passed_over,
    )


def _kept(spans: Iterable[S], name: Callable[[S], Hashable]) -> tuple[S, ...]:
    seen: Counter[Hashable] = Counter()
    kept = []
    for span in sorted(spans, key=lambda each: (each.start, each.end, str(name(each)))):
        seen[name(span)] += 1
        if seen[name(span)] <= MOST:
            kept.append(span)
    return tuple(kept)


def _mentions(heard: Heard, known: Lexicon, text: str) -> Iterator[Mention]:
    for decoding in heard.decodings:
        symptom, decoded = decoding.symptom, decoding.decoded
        yield Mention(decoded.start, decoded.end, decoded.text, symptom=symptom, specialist=_room(known, symptom))
    over = taken_back(heard)
    for sound in heard.of("symptom"):
        if sound not in over:
            span = (sound.start, sound.end, text[sound.start : sound.end])
            yield Mention(*span, symptom=sound.name, specialist=_room(known, sound.name))


def _room(known: Lexicon, symptom: str) -> str:
    return known.symptoms[symptom].specialist


def _claims(heard: Heard, known: Lexicon, text: str) -> Iterator[Claim]:
    subjects = (sound for sound in heard.of("symptom") if known.symptoms[sound.name].read)
    cures = sorted((sound.start, sound.end) for sound in (*heard.of("cure"), *subjects))
    curing = sorted(sound.end for sound in heard.of("curing"))
    asked = Ground.of((sound.start, sound.end) for sound in heard.of("decoy"))
    for sound in heard.of("claim"):
        if asked.covers(sound.start, sound.end):
            continue
        row = known.claims[int(sound.name)]
        for start, end in _claimed(row.span, sound, cures, curing, text):
            yield Claim(start, end, text[start:end], kind=row.kind, answer=row.answer)


def _claimed(
    span: str, sound: Sound, cures: Sequence[tuple[int, int]], curing: Sequence[int], text: str
) -> Iterator[tuple[int, int]]:
    """CURES: the places of all cures, in order. CURING: where words like "will fix" end: no claim is what they cure."""
    end = clause_end(text, sound.end)
    match span:
        case "cure":
            nearby = (cures[at] for at in range(bisect_left(cures, (sound.start, 0)), len(cures)))
            yield from (cure for cure in takewhile(lambda place: place[0] < end, nearby) if cure[1] <= end)
        case "clause":
            after = curing[bisect_left(curing, sound.end) :][:1]
            yield sound.start, min((end, *after))
        case _:
            yield sound.start, sound.end


def _widest(claims: Iterable[Claim]) -> list[Claim]:
    """Without claims that lie inside another of their kind."""
    kept: list[Claim] = []
    for claim in sorted(claims, key=lambda each: (each.start, -each.end)):
        if not any(other.kind is claim.kind and claim.end <= other.end for other in kept[-MOST:]):
            kept.append(claim)
    return kept


def _pressures(heard: Heard, known: Lexicon, text: str) -> Iterator[Pressure]:
    for sound in heard.of("pressure"):
        row = known.pressures[int(sound.name)]
        yield Pressure(sound.start, sound.end, text[sound.start : sound.end], kind=row.kind, answer=row.answer)
