"""Where the words of a query lean: a linear score over words, their stems and neighbours, and over what was heard.

The weights are learned from the rooms' own labelled reports (learn/leaning.py) and ship as leaning.json. The row of a
word is found in one table by a checksum, so the file stays small however many words were learned.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache, lru_cache
from math import exp
from operator import itemgetter
from struct import Struct as Binary
from typing import TypeAlias
from zlib import crc32

import msgspec
from msgspec import Struct

from torchtriage.core.query import Leaning
from torchtriage.routing.gist import Gist
from torchtriage.routing.tables import HERE
from torchtriage.routing.words import stem

FILE = os.path.join(HERE, "leaning.json")  # noqa: PTH118 - see catalog/walk.py
BITS = 15
DAMPING = 0.35
PREFIX = 5
TOLD = 4
MOST = 30
OFFSET, FINE = 1 << 20, 10_000
Row: TypeAlias = tuple[int, tuple[int, ...]]


class Weights(Struct, frozen=True):
    """leaning.json. table: 2**BITS rows of one signed byte for each of `to`, then of `rooms`, in units of `unit`.

    heard: the rows of what the lexicon can hear, in the same order, as numbers. learned_from: a checksum of the
    reports.
    """

    to: tuple[str, ...]
    rooms: tuple[str, ...]
    bias: tuple[float, ...]
    unit: float
    heard: dict[str, tuple[float, ...]]
    table: bytes
    learned_from: str


def lean(gist: Gist) -> Leaning | None:
    """Where GIST leans; None where it is empty or nothing was learned."""
    known = weights()
    if known is None or not (gist.words or gist.heard):
        return None
    words = [_word(word) for word in gist.words]
    scores = _scores([*(packed for packed, _ in words), *map(_other, others(gist))], gist, known)
    leads, beside = scores[: len(known.to)], scores[len(known.to) :]
    best, highest = max(enumerate(leads), key=itemgetter(1))
    whole = sum(exp(score - highest) for score in leads)
    rooms = {name: round(_share(score), 3) for name, score in zip(known.rooms, beside, strict=True)}
    return Leaning(known.to[best], round(1 / whole, 3), tuple(_loudest(best, gist, words, known)), rooms)


def _share(score: float) -> float:
    """The logistic function."""
    return 1 / (1 + exp(min(max(-score, -MOST), MOST)))


def _scores(rows: list[int], gist: Gist, known: Weights) -> list[float]:
    count, *said = _unpacked(rows)
    _, *heard = _unpacked([row for name in gist.heard if (row := _heard(name)) is not None])
    scale = known.unit / length(count)
    return [bias + scale * one + other / FINE for bias, one, other in zip(known.bias, said, heard, strict=True)]


def _unpacked(rows: list[int]) -> list[int]:
    """How many rows were added up in packed ROWS, then the sums of their columns."""
    lanes, offset = _table().lanes, OFFSET * len(rows)
    sums = lanes.unpack(sum(rows).to_bytes(lanes.size, "little"))
    return [each - offset for each in sums]


def _loudest(best: int, gist: Gist, rows: list[Row], known: Weights) -> Iterator[str]:
    """The words that speak most for the answer numbered BEST against the mean of all, the loudest first."""
    count = len(known.to)
    told = [(columns[-1] - count * columns[best], word) for word, (_, columns) in zip(gist.words, rows, strict=True)]
    yield from (word for _, word in sorted([each for each in told if each[0] < 0])[:TOLD])


def features(word: str) -> list[str]:
    """What a word is known by: itself, its stem, and how a long one begins."""
    known = [f"w{word}", f"s{stem(word)}"]
    return [*known, f"x{word[:PREFIX]}"] if len(word) > PREFIX else known


def others(gist: Gist) -> list[str]:
    """The features of GIST beside its words."""
    return [*(f"p{pair}" for pair in gist.pairs), *(f"t{topic}" for topic in gist.topics)]


def length(count: int) -> float:
    """What the sum over COUNT features is divided by: long texts say more, but not in proportion."""
    return float(max(count, 1) ** DAMPING)


def slot(feature: str) -> int:
    """The number of the row of a feature."""
    return crc32(feature.encode("utf-8", "surrogatepass")) & ((1 << BITS) - 1)


@lru_cache(maxsize=16384)
def _word(word: str) -> Row:
    columns = _columns([slot(feature) for feature in features(word)])
    return _pack(columns), (*columns[1:], sum(columns[1 : 1 + _table().answers]))


@lru_cache(maxsize=16384)
def _other(feature: str) -> int:
    return _pack(_columns([slot(feature)]))


@lru_cache(maxsize=4096)
def _heard(name: str) -> int | None:
    row = (weights() or EMPTY).heard.get(name)
    return None if row is None else _pack([1, *(round(value * FINE) for value in row)])


class Table(Struct, frozen=True):
    """The table of the weights, the form of its rows, and the form of a packed sum of them with their count."""

    content: bytes
    row: Binary
    lanes: Binary
    answers: int


@cache
def _table() -> Table:
    known = weights() or EMPTY
    width = len(known.bias)
    return Table(known.table, Binary(f"{width}b"), Binary(f"<{width + 1}I"), len(known.to))


def _columns(numbers: list[int]) -> list[int]:
    """How many rows, then the sums of their columns."""
    table = _table()
    rows = [table.row.unpack_from(table.content, number * table.row.size) for number in numbers]
    return [len(rows), *(sum(column) for column in zip(*rows, strict=True))]


def _pack(columns: list[int]) -> int:
    """COLUMNS as one whole number: adding such numbers adds all columns at once.

    Each has a lane of 32 bits and stands OFFSET too high, so that none is negative.
    """
    return int.from_bytes(_table().lanes.pack(*(each + OFFSET for each in columns)), "little")


@cache
def weights() -> Weights | None:
    """What was learned; None in a checkout where nothing has been."""
    try:
        with open(FILE, "rb") as file:  # noqa: PTH123 - see catalog/walk.py
            return msgspec.json.decode(file.read(), type=Weights)
    except FileNotFoundError:
        return None


EMPTY = Weights((), (), (), 1.0, {}, b"", "")
