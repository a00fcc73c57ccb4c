"""Which parts of a text are listened to, and as what: prose and log lines in full, code and settings for subjects."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias

from msgspec import Struct

Kind: TypeAlias = Literal["prose", "code", "setting"]

LIMIT = 48_000
REPEATS = 3
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_FRAME = re.compile(r'File "[^"\n]{1,400}", line \d+')
_CODE = re.compile(
    r"(?:>>> ?)?(?:import \w+(?:\.\w+)*(?: as \w+)?$|from [\w.]+ import |def \w+\(|class \w+[(:]|@\w+|"
    r"(?:for|if|elif|while|with|try|except|else)\b[^?]*:(?: *#.*)?$|return\b.*[(\[]|"
    r"[\w.\[\]'\", ]{1,80}[-+*/]?= ?[\w.]+[(\[]|[\w.]+\.\w+\([^\n]*\)(?: *#.*)?$)"
)
_SETTING = re.compile(
    r"""[-*•]? ?["'`]?[A-Za-z][\w ()/.?-]{1,48}["'`]?\s*[:=]\s*"""
    r"""["'`{\[(]?[^\s,;|]{0,60}(?: [^\s,;|]{1,40}){0,4} ?,?$"""
)
_OUTCOME = re.compile(
    r"\b(?:nan|inf|loss|acc\w*|error|exception|warning|failed|memory|it/s|s/it|oom|killed)\b", re.IGNORECASE
)
BLOCK = 3
LINE = 400
MANY = 80
_LINE = re.compile(r"[^\r\n]*[\r\n]|[^\r\n]+")


class Passage(Struct, frozen=True, gc=False):
    """text[start:end]."""

    start: int
    end: int
    kind: Kind = "prose"


def passages(text: str) -> list[Passage]:
    """The parts of TEXT to listen to, in order.

    The frames of a traceback are passed over: the words in a path or in a line of somebody's code are not the
    user's. Of a text longer than LIMIT characters or MANY lines, a line that differs only in its numbers is heard
    REPEATS times, and of what remains the first third and the last two thirds of LIMIT: reports open with the
    complaint and logs end with the failure.
    """
    lines = _lines(text)
    if len(lines) == 1 and len(text) <= LIMIT:
        return [Passage(0, len(text))]
    if len(text) > LIMIT or len(lines) > MANY:
        lines = _within(_unlike(text, lines), LIMIT // 3, LIMIT - LIMIT // 3)
    return list(_joined(_told_apart(text, lines)))


def _lines(text: str) -> list[tuple[int, int]]:
    """Where lines begin and end; a progress bar begins its own anew with a carriage return."""
    return [found.span() for found in _LINE.finditer(text)] or [(0, 0)]


def _unlike(text: str, lines: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """LINES without those that were there REPEATS times already, but for their numbers."""
    seen: Counter[str] = Counter()
    for start, end in lines:
        shape = _NUMBER.sub("#", text[start : min(end, start + 200)])
        seen[shape] += 1
        if seen[shape] <= REPEATS:
            yield start, end


def _within(lines: Iterable[tuple[int, int]], first: int, last: int) -> list[tuple[int, int]]:
    """The FIRST and the LAST characters of LINES; all of them where they are not more."""
    found = list(lines)
    if sum(end - start for start, end in found) <= first + last:
        return found
    opening = list(_upto(found, first))
    backwards = _upto(((-end, -start) for start, end in reversed(found)), last)
    closing = [(-end, -start) for start, end in backwards]
    return [*opening, *reversed(closing)]


def _upto(lines: Iterable[tuple[int, int]], budget: int) -> Iterator[tuple[int, int]]:
    for start, end in lines:
        if budget <= 0:
            return
        yield start, min(end, start + budget)
        budget -= end - start


def _told_apart(text: str, lines: Iterable[tuple[int, int]]) -> Iterator[Passage]:
    """What each line is, by its first LINE signs; the line under a frame is the code that stood there."""
    framed = False
    settings: list[Passage] = []
    for start, end in lines:
        line = text[start : min(end, start + LINE)].strip()
        if _FRAME.match(line):
            framed = True
            continue
        if framed and text.startswith("    ", start):
            continue
        framed = False
        code = _CODE.match(line)
        if not code and _SETTING.match(line) and not _OUTCOME.search(line):
            settings.append(Passage(start, end, "setting"))
            continue
        yield from _block(settings)
        settings = []
        yield Passage(start, end, "code" if code else "prose")
    yield from _block(settings)


def _block(lines: list[Passage]) -> Iterator[Passage]:
    """One or two lines of the form "name: value" may be anything; BLOCK of them are somebody's settings."""
    for line in lines:
        yield line if len(lines) >= BLOCK else Passage(line.start, line.end)


def _joined(found: Iterable[Passage]) -> Iterator[Passage]:
    """Neighbours of one kind as one passage: a sentence may run over several lines."""
    last: Passage | None = None
    for passage in found:
        if last and last.end == passage.start and last.kind == passage.kind:
            last = Passage(last.start, passage.end, last.kind)
            continue
        if last:
            yield last
        last = passage
    if last:
        yield last
