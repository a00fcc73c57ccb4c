"""Scalars as SummaryWriter writes them are read in one go, and say the same as field by field."""

from __future__ import annotations

import struct
from random import Random

import pytest

from torchtriage.examine.artefact.curves.events import _event, _scalar


def varint(number: int) -> bytes:
    out = bytearray()
    number &= 2**64 - 1
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*out, number))


def field(number: int, data: bytes) -> bytes:
    return bytes([number << 3 | 2]) + varint(len(data)) + data


def event(tag: bytes, step: int, value: float) -> bytes:
    scalar = field(1, tag) + b"\x15" + struct.pack("<f", value)
    return b"\x09" + struct.pack("<d", 1.5) + b"\x10" + varint(step) + field(5, field(1, scalar))


def test_one_go_and_field_by_field_say_the_same() -> None:
    chance = Random(3)
    for _ in range(3000):
        tag = bytes(chance.randrange(256) for _ in range(chance.choice((1, 9, 10, 21, 80, 116))))
        data = event(tag, chance.choice((0, 1, 127, 128, 2**31, 2**40)), chance.random())
        assert [_scalar(data)] == list(_event(data))


@pytest.mark.parametrize(
    "data",
    [
        event(b"loss", -1, 0.5),
        event(b"x" * 200, 3, 0.5),
        event(b"loss", 3, 0.5) + b"\x18\x01",
        event(b"loss", 3, 0.5).replace(b"loss", b"los"),
        event(b"loss", 3, 0.5)[:-1],
        b"",
    ],
)
def test_what_is_not_quite_that_is_taken_apart(data: bytes) -> None:
    assert _scalar(data) is None
