"""CRC-32C as TFRecord files use it (RFC 3720, polynomial 0x1EDC6F41 reflected), of a few bytes: no table is kept."""

from __future__ import annotations

_POLYNOMIAL = 0x82F63B78
_MASK = 0xA282EAD8


def masked(data: bytes) -> int:
    """The checksum of DATA, turned and shifted as TensorFlow writes it."""
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = (value >> 1) ^ (_POLYNOMIAL if value & 1 else 0)
    value ^= 0xFFFFFFFF
    return (((value >> 15) | (value << 17)) + _MASK) & 0xFFFFFFFF
