"""Bytes with something broken in them, the same ones each time."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence


def mutations(seeds: Sequence[bytes], count: int, seed: int = 0) -> Iterator[bytes]:
    """COUNT of them: bytes flipped, taken out, doubled, put in from another one, or the end cut off."""
    chance = random.Random(seed)
    for _ in range(count):
        data = bytearray(chance.choice(seeds))
        for _ in range(chance.choice((1, 1, 1, 2, 8))):
            at = chance.randrange(len(data) + 1)
            match chance.randrange(12):
                case 5 | 6 | 7 | 8 if at < len(data):  # a number, a letter, or the slot of a memo
                    data[at] ^= 1 << chance.randrange(8)
                case 0 | 9 | 10 if at < len(data):
                    data[at] = chance.randrange(256)
                case 1:
                    del data[at : at + chance.randrange(1, 9)]
                case 2:
                    data[at:at] = data[at : at + chance.randrange(1, 65)]
                case 3:
                    other = chance.choice(seeds)
                    begin = chance.randrange(len(other))
                    data[at:at] = other[begin : begin + chance.randrange(1, 65)]
                case 4:
                    data[at:at] = bytes(chance.choice((0, 255, 40, 82, 98, 99, 147)) for _ in range(4))
                case _:
                    del data[max(at, 1) :]
        yield bytes(data)
