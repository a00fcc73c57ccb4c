"""One log read once through: its lines are given to those who know what they say."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from torchtriage.core.query import Decoded
from torchtriage.examine.artefact.coded import utf8
from torchtriage.examine.artefact.logs import series
from torchtriage.examine.artefact.logs.continuation import continues, is_of_another, unquoted
from torchtriage.examine.artefact.logs.elastic import Summary
from torchtriage.examine.artefact.logs.lines import (
    WORDS,
    Key,
    end_of,
    hits,
    is_labelled,
    of_rank,
    plain,
    rank_of_file,
    told_rank,
)
from torchtriage.examine.artefact.logs.marks import CAUSE, HANDLER, NOISE, Mark, mark, tier_of
from torchtriage.examine.artefact.logs.nccl import Nccl
from torchtriage.examine.artefact.logs.said import Said
from torchtriage.examine.artefact.logs.series import Series
from torchtriage.examine.artefact.logs.tracebacks import GROUP, START, Open, links, of_group
from torchtriage.examine.artefact.opened import CHUNK, Opened

Decode = Callable[[str], tuple[Decoded, ...]]
MOST = 500
"""Messages of one file that are kept."""
ALIKE = 40
"""Messages of one first line that are kept, whoever says it: thousands of ranks lose the same peer, and a device-side
assert says itself once for each thread."""
SHORT = 2**16
"""Bytes of what may be an excerpt: people paste a message without the traceback that it came with."""
PATIENCE = 500
"""Lines after which a traceback that does not go on is taken to be over."""
LOOK = 128
"""Lines after which it is looked for such tracebacks: of thousands of ranks, each may have one."""
_LATER = 5
"""Losses that are printed after an error without a traceback: from so many on, the job has caught it and trained on."""
_NESTED = ("log", "message", "msg", "exc_info", "exception", "error", "text", "py_callstack")


@dataclass
class Scan:
    """What one file says, while it is read. rank: that of lines that name none. left: messages beyond MOST.

    short: the whole text of one that has no more than SHORT bytes, else None.
    """

    path: str
    decode: Decode
    rank: int | None = None
    said: list[Said] = field(default_factory=list)
    number: int = 0
    left: int = 0
    broken: str = ""
    short: bytes | None = b""
    ranks: set[int] = field(default_factory=set)
    nccl: Nccl = field(default_factory=Nccl)
    _open: dict[Key, Open] = field(default_factory=dict)
    _last: dict[Key, int] = field(default_factory=dict)
    _noise: set[Key] = field(default_factory=set)
    _groups: set[Key] = field(default_factory=set)
    _link: dict[Key, str] = field(default_factory=dict)
    _who: dict[str, int] = field(default_factory=dict)
    _alike: Counter[str] = field(default_factory=Counter)
    _known: dict[str, tuple[Decoded, ...]] = field(default_factory=dict)
    _labelled: bool = False
    _looked: int = 0

    def __post_init__(self) -> None:
        self.rank = rank_of_file(self.path)
        self.summary, self.series = Summary(self.path), Series(self.path)

    def through(self) -> Scan:
        """The whole file, in bounded memory; raises Unreadable where it cannot be opened."""
        with Opened(self.path) as file:
            self.over(utf8(file.chunks()))
            self.broken = file.broken
        return self

    def over(self, chunks: Iterable[bytes]) -> Scan:
        """The whole text of CHUNKS, in UTF-8."""
        rest = b""
        for chunk in chunks:
            body = rest + chunk.replace(b"\r\n", b"\n")
            if self.short is not None:
                self.short = self.short + body[len(rest) :] if len(self.short) + len(body) <= SHORT else None
            if not self.number:
                self._labelled, self.number = is_labelled(body[:CHUNK]), 1
            cut = body.rfind(b"\n") + 1 or (len(body) if len(body) > 4 * CHUNK else 0)
            self._body(body[:cut])
            rest = body[cut:]
        self._body(rest)
        self.number -= bool(self.number and not rest)
        for key in list(self._open):
            self._close(key)
        self.said = [self._judged(each) for each in self.said]
        return self

    def _judged(self, said: Said) -> Said:
        """SAID as noise where the job trained on: a search for the batch size that fits prints what it caught."""
        is_caught = said.kind in ("raised", "native") and said.frame is None and said.tier == CAUSE
        is_handled = HANDLER.search(said.text) is not None  # some write a checkpoint or their stacks, and train on
        is_over = (is_caught or is_handled) and self.series.later(said.line) >= _LATER
        return replace(said, tier=NOISE) if is_over else said

    def _body(self, body: bytes) -> None:
        """Lines that may matter, and all that follow while something is open; then the losses."""
        first, at, counted, line = self.number, 0, 0, self.number
        todo, turn = hits(body, WORDS), 0
        while at < len(body):
            if not self._open and not self.summary.is_open:
                while turn < len(todo) and todo[turn][0] < at:
                    turn += 1
                if turn == len(todo):
                    break
                at = todo[turn][0]
            line, counted = line + body.count(b"\n", counted, at), at
            end = end_of(body, at)
            self._line(plain(body[at:end]), line)
            at = end + 1
        self.number = first + body.count(b"\n")
        self._losses(body, first)

    def _losses(self, body: bytes, first: int) -> None:
        is_full = self.series.lines >= series.FULL
        if is_full and not self.series.is_odd and not series.is_odd(body):
            return
        counted, line = 0, first
        for start, end in hits(body, series.WORDS):
            if is_full and not self.series.is_odd and not series.ODD.search(body, start, end):
                continue
            line, counted = line + body.count(b"\n", counted, start), start
            who, text = of_rank(plain(body[start:end]), self._labelled)
            self.series.takes(text, self._rank(who), line)

    def _line(self, text: str, line: int) -> None:
        who, words = of_rank(text, self._labelled)
        if isinstance(who, str):
            who = self._known_as(who, words)
        if isinstance(who, int):
            self.ranks.add(who)
        key = self.rank if who is None else who
        for part in _unwrapped(words):
            self._words(part, key, line)
        self._looked += 1
        if self._looked % LOOK == 0:
            for late in [other for other, last in self._last.items() if line - last > PATIENCE]:
                self._close(late)

    def _known_as(self, source: str, words: str) -> Key:
        """SOURCE, or the rank that it has said it has."""
        if source not in self._who and (rank := told_rank(words)) is not None:
            self._who[source] = rank
        return self._who.get(source, source)

    def _rank(self, key: Key) -> int | None:
        """The rank of whoever writes; that of the file where nothing tells it."""
        known = self._who.get(key) if isinstance(key, str) else key
        return self.rank if known is None else known

    def _words(self, text: str, key: Key, line: int) -> None:
        held = self._open.get(key)
        if "Exception Group Traceback" in text:
            self._groups.add(key)
        text = unquoted(of_group(text) if key in self._groups else text)
        if held is not None:
            if continues(held, text) or (not is_of_another(held, text) and held.takes(text, line)):
                self._last[key] = line
                return
            self._close(key)
        if START.match(text.strip()):
            self._open[key], self._last[key] = Open(line, is_noise=key in self._noise), line
            self._noise.discard(key)
        elif link := links(text):
            self._link[key] = link
        elif text.startswith("Exception ignored"):
            self._noise.add(key)
        elif not self.summary.takes(text, line) and not self.nccl.takes(text) and (found := mark(text)):
            self._mark(found, text, key, line)

    def _mark(self, found: Mark, text: str, key: Key, line: int) -> None:
        if found.kind == "raised":  # its message may go on
            self._open[key], self._last[key] = Open(line, message=[text], at=line, is_noise=key in self._noise), line
            self._noise.discard(key)
            return
        rank = self._rank(key) if found.rank is None else found.rank
        self._keep(Said(self.path, line, rank, found.kind, text.strip(), tier=found.tier, pid=found.pid))

    def _close(self, key: Key) -> None:
        held = self._open.pop(key)
        self._last.pop(key, None)
        link = self._link.pop(key, "")
        if held.is_broken:
            return
        text = "\n".join(held.message)
        if text.strip() == "AssertionError" and held.frame and held.frame.code.startswith("assert "):
            text = f"AssertionError: {held.frame.code}"  # a check without words says what it checks
        is_noise = held.is_noise or GROUP.match(text)  # its parts, which follow, are what went wrong
        tier, rank = NOISE if is_noise else tier_of(text), self._rank(key)
        before = self.said[-1] if link and self.said and self.said[-1].rank == rank else None
        if before is not None and link == "cause":
            if tier == CAUSE:
                tier = NOISE  # the same error, told again by what it passed through
            if before.frame is None:  # raised within a library that raised another one from it, as DataLoader does
                self.said[-1] = replace(before, frame=held.frame)
        elif before is not None and before.tier == CAUSE:
            self.said[-1] = replace(before, tier=NOISE)
        self._keep(Said(self.path, held.at, rank, "raised", text, frame=held.frame, tier=tier))

    def _keep(self, said: Said) -> None:
        alike = "".join(sign for sign in said.headline if not sign.isdigit())
        self._alike[alike] += 1
        if len(self.said) >= MOST or self._alike[alike] > ALIKE:
            self.left += 1
            return
        if said.text not in self._known:
            self._known[said.text] = self.decode(said.text)
        decoded = self._known[said.text]
        if said.kind != "warned" or decoded:
            self.said.append(replace(said, decoded=decoded))


def _unwrapped(text: str) -> Iterator[str]:
    """TEXT, or the lines in a JSON object that a logging driver or torchelastic put around it."""
    if not text.startswith('{"'):
        yield text
        return
    value: Any = None
    with suppress(ValueError, RecursionError):
        value = json.loads(text)
    found = list(_inner(value))
    yield from (line for part in found for line in part.splitlines() or [""]) if found else [text]


def _inner(value: Any, depth: int = 0) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict) and depth < 4:
        for name in ("extraInfo", *_NESTED):
            if name in value:
                yield from _inner(value[name], depth + 1)
