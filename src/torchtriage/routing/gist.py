"""What of a text its leaning is computed from: the words that say what happens, and what was heard in them.

Words of a claim, a pressure or a courtesy are left out: they must not move a route; so is what the user says is not
so, or no longer. Signs of code and the frames of
a traceback are left out, too.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import combinations, islice, pairwise

from msgspec import Struct

from torchtriage.core.query import Query
from torchtriage.routing.compiled import lexicon
from torchtriage.routing.hear import Ground, Heard, hear, taken_back
from torchtriage.routing.order import by_phrases, leads
from torchtriage.routing.steps import subject_of
from torchtriage.routing.words import PAUSE, Token, stem

SHORT = 60
FEW = 6
MOST = 500
_CLAUSE = re.compile(r"[,;()\n。，；！？]|[.!?](?=\s|$)|\b(?:but|yet|still|although|however|while)\b", re.IGNORECASE)
_STOP = "."
SAYINGS = frozenset({"claim", "pressure", "manner"})


class Gist(Struct, frozen=True, gc=False):
    """words: each once, in the order of the text. pairs: neighbours, as stems. topics: what the words are about.

    heard: what the lexicon made of it.
    """

    words: tuple[str, ...]
    pairs: tuple[str, ...]
    topics: tuple[str, ...]
    heard: tuple[str, ...]


def gist(query: Query) -> Gist:
    """The gist of QUERY; where nothing but claims and courtesies was said, they are the gist."""
    heard = hear(query.text)
    found = [*heard.prose, *heard.code]
    aside = _aside(query, heard)
    over = Ground.of(taken_back(heard).values())
    words, pairs = _said([each for each in found if not aside.touches(each[1], each[2])] if aside else found)
    if not words:
        words, pairs = _said([each for each in found if not over.touches(each[1], each[2])])
    return Gist(words, pairs, tuple(_topics(words)), tuple(dict.fromkeys(_heard(query, heard))))


def _said(found: Iterable[Token]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    read = [_read(form) for form, *_ in islice(found, MOST)]
    roots = [root for _, root in read if root]
    pairs = [f"{one} {other}" for one, other in pairwise(roots) if one != _STOP != other]
    return tuple(dict.fromkeys([word for word, _ in read if word])), tuple(dict.fromkeys(pairs))


@lru_cache(maxsize=16384)
def _read(form: str) -> tuple[str, str]:
    """The word that FORM is a spelling of, and its stem: "" for a light word, _STOP for the end of a sentence."""
    if form == PAUSE:
        return "", _STOP
    known = lexicon().vocabulary
    word = known.spellings.get(form, form)
    return word, "" if word in known.light else stem(word)


def _aside(query: Query, heard: Heard) -> Ground | None:
    """The places of what was said beside the matter: whole clauses where they are short and say nothing else."""
    sayings = [sound for sound in heard.sounds if sound.layer in SAYINGS]
    over = taken_back(heard).values()
    if not sayings and not over:
        return None
    claimed = [(claim.start, claim.end) for claim in query.claims]
    claims = Ground.of(claimed)
    seen = Ground.of((each.start, each.end) for each in query.symptoms if not claims.touches(each.start, each.end))
    bounds = [0, *(found.end() for found in _CLAUSE.finditer(query.text)), len(query.text)]
    return Ground.of([*claimed, *over, *(_clause(sound.start, sound.end, bounds, seen) for sound in sayings)])


def _clause(start: int, end: int, bounds: list[int], seen: Ground) -> tuple[int, int]:
    first = bounds[bisect_right(bounds, start) - 1]
    last = next((bound for bound in bounds[bisect_right(bounds, end - 1) :]), end)
    if last - first <= SHORT and not seen.touches(first, last):
        return first, max(last, end)
    return start, end


def _topics(words: Iterable[str]) -> Iterator[str]:
    """What the words are about, and, where that is little, which two of these meet."""
    known = lexicon().topics
    topics = sorted({topic for word in words for topic in known.get(word, ())})
    yield from topics
    if len(topics) <= FEW:
        yield from (f"{one} {other}" for one, other in combinations(topics, 2))


def _heard(query: Query, heard: Heard) -> Iterator[str]:
    """Symptoms by how they were said; messages; questions and referrals; where the phrases alone would lead."""
    yield f"phrases {leads(by_phrases(subject_of(query), heard))}"
    claims = Ground.of((claim.start, claim.end) for claim in query.claims)
    seen = [each for each in query.symptoms if not claims.touches(each.start, each.end)]
    for mention in seen:
        yield f"seen {mention.symptom}"
        yield f"room {mention.specialist}"
    if not seen:
        yield from (f"said {mention.symptom}" for mention in query.symptoms)
    yield from (f"denied {sound.name}" for sound in taken_back(heard))
    yield from (f"message {decoded.signature}" for decoded in query.decoded)
    yield from (
        f"{sound.layer} {sound.name}" for sound in heard.sounds if sound.layer in ("question", "referral", "unless")
    )
