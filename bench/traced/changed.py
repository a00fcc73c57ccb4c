"""Traces that something has happened to."""

from __future__ import annotations

from random import Random

_ODD = (
    b"", b"null", b"-1", b"1e999", b"NaN", b"-0.0", b"9" * 400, b'"x"', b"{}", b"[]", b"[" * 3000, b"{" * 300, b'"',
    b"\\", b"\x00", b"\xff\xfe", b"true", b'"ts": 5,', b'"dur": -7,', b'"ph": "X",', b'"name": "\\ud800",', b"]",
    b"},{", b'"args": {"Input Dims": [[9,9],"x"]},', b'"cat": "kernel",', b"1.5e18", b"18446744073709551616",
    b'"Collective name": "allreduce",', b"]}", b"\n",
)  # fmt: skip


def changed(data: bytes, chance: Random) -> bytes:
    """DATA with up to eight things cut out, put in, doubled or turned over."""
    for _ in range(chance.randint(1, 8)):
        at = chance.randrange(len(data) + 1)
        other = min(len(data), at + chance.randrange(1, 200))
        match chance.randrange(6):
            case 0:
                data = data[:at]
            case 1:
                data = data[:at] + data[other:]
            case 2:
                data = data[:at] + chance.choice(_ODD) + data[at:]
            case 3:
                data = data[:at] + data[at:other] * 2 + data[other:]
            case 4:
                data = data[:at] + chance.choice(_ODD) + data[other:]
            case _:
                data = data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]
    return data
