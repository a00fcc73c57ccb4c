"""CRC-32 faster than zlib's, by numpy.

A checksum of this kind is the remainder of a polynomial, and x^(8N) = x^(8K) + 1 in the remainders of CRC-32 for the N
and K below (the smallest such pair of whole bytes, found by trying all powers). So a byte may be taken away when it is
added to the bytes N - K and N places later: of any length of data N bytes remain that have the same checksum, and all
the work is XOR of long rows of bytes. The same idea with other numbers is known for C as "Chorba".
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

N, K = 91_639, 41_678
_NEAR = N - K
_LEAST = 2**20  # bytes below which zlib is as fast


class Sum:
    """The CRC-32 of SIZE bytes, piece by piece: each is read into room(), then added."""

    def __init__(self, size: int) -> None:
        self._size, self._done = size, 0
        self._folds = size >= _LEAST
        self._crc = 0
        self._rows = _rows(0)

    def room(self, size: int) -> memoryview:
        """Where the next SIZE bytes are to be put."""
        if len(self._rows) < N + size:
            rows = _rows(size)
            rows[:N] = self._rows[:N]
            self._rows = rows
        return memoryview(self._rows)[N : N + size]

    def add(self, piece: memoryview) -> None:
        """PIECE, that lies in room(); its bytes are no longer themselves afterwards."""
        if not self._folds:
            self._crc = zlib.crc32(piece, self._crc)
            return
        size, rows = len(piece), self._rows
        if self._done == 0:
            rows[N : N + 4] ^= 0xFF
        alone = self._size - K - self._done  # from there on nothing is taken from the nearer of the two places
        for at in range(N, N + size, _NEAR):
            end = min(at + _NEAR, N + size)
            near = min(end, max(N + alone, at))
            np.bitwise_xor(rows[at:near], rows[at - _NEAR : near - _NEAR], out=rows[at:near])
            np.bitwise_xor(rows[at:end], rows[at - N : end - N], out=rows[at:end])
        self._done += size
        rows[:N] = rows[size : size + N].copy() if size < N else rows[size : size + N]

    def value(self) -> int:
        """The checksum of all that was added."""
        return zlib.crc32(self._rows[:N], 0xFFFFFFFF) if self._folds else self._crc


def _rows(size: int) -> Any:
    """N bytes and SIZE more, the latter aligned so that they can be taken for numbers of any kind."""
    whole = np.zeros(N + size + 64, dtype=np.uint8)
    begin = -(whole.ctypes.data + N) % 64
    return whole[begin : begin + N + size]
