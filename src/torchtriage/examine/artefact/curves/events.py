"""TensorBoard's event files: records of TFRecord, each an Event of tensorflow/core/util/event.proto.

A field is a number (field << 3 | how it is written) and its value: 0 a varint, 1 eight bytes, 2 a length and so many
bytes, 5 four bytes. Read here: Event.step 2, .summary 5; Summary.value 1; Value.tag 1, .simple_value 2, .tensor 8;
TensorProto.dtype 1, .tensor_shape 2, .tensor_content 4, .float_val 5, .double_val 6.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from functools import lru_cache

from torchtriage.examine.artefact.crc import masked
from torchtriage.examine.artefact.opened import Opened

LARGEST = 2**26
"""Bytes of a record that is looked into: what is larger holds pictures or a graph."""
_SIZES = {1: 8, 5: 4}
_FLOAT, _DOUBLE = 1, 2  # DT_FLOAT, DT_DOUBLE
_PLAIN = re.compile(
    rb"\x09.{8}\x10([\x80-\xff]{0,8}[\x00-\x7f])\x2a([\x00-\x7f]\x0a[\x00-\x7f]\x0a[\x00-\x7f])(.{1,116})\x15(.{4})",
    re.DOTALL,
)
_FLOATS = struct.Struct("<f")
Value = tuple[str, int, float]


class Broken(Exception):
    """The file does not go on as it should."""


def values(file: Opened) -> Iterator[Value]:
    """Tag, step and value of each scalar; raises Broken where the records end before the file does."""
    offset = 0
    while head := file.read(12):
        if len(head) < 12:
            raise Broken(f"it breaks off at byte {offset}")
        length = int.from_bytes(head[:8], "little")
        if not _is_checked(head):
            raise Broken(f"the length of the record at byte {offset} is damaged")
        data = _record(file, length)
        if data is None:
            raise Broken(f"it breaks off in the record at byte {offset}")
        offset += length + 16
        if (plain := _scalar(data)) is not None:
            yield plain
            continue
        try:
            yield from _event(data)
        except (struct.error, IndexError, ValueError) as error:
            raise Broken(f"the record before byte {offset} is damaged: {error}") from error


@lru_cache(maxsize=4096)
def _is_checked(head: bytes) -> bool:
    """Whether a record's length has the checksum that follows it; records of one kind are of few lengths."""
    return masked(head[:8]) == int.from_bytes(head[8:], "little")


def _scalar(data: bytes) -> Value | None:
    """The one scalar of an event as SummaryWriter writes it; None for others, which are taken apart field by field."""
    found = _PLAIN.fullmatch(data)
    if found is None:
        return None
    step, sizes, tag, value = found.groups()
    size = len(tag)
    if sizes[0] != size + 9 or sizes[2] != size + 7 or sizes[4] != size:
        return None
    return _name(tag), _varint(step, 0)[0], float(_FLOATS.unpack(value)[0])


@lru_cache(maxsize=4096)
def _name(tag: bytes) -> str:
    return tag.decode("utf-8", "replace")


def _record(file: Opened, length: int) -> bytes | None:
    """The record and not its checksum; b"" for one that is too large, None where the file ends before."""
    if length <= LARGEST:
        data = file.read(length + 4)
        return data[:length] if len(data) == length + 4 else None
    left = length + 4
    while left > 0 and (piece := file.read(min(left, 2**20))):
        left -= len(piece)
    return None if left else b""


def _event(data: bytes) -> Iterator[Value]:
    step, summaries = 0, []
    for field, value in _fields(data):
        if field == 2 and isinstance(value, int):
            step = value - 2**64 if value >= 2**63 else value
        elif field == 5 and isinstance(value, bytes):
            summaries.append(value)
    for summary in summaries:
        for field, value in _fields(summary):
            if field == 1 and isinstance(value, bytes) and (told := _value(value)) is not None:
                yield told[0], step, told[1]


def _value(data: bytes) -> tuple[str, float] | None:
    """The tag and the scalar of one value; None for a picture, a histogram or a text."""
    tag, number = "", None
    for field, value in _fields(data):
        if field == 1 and isinstance(value, bytes):
            tag = value[:500].decode("utf-8", "replace")
        elif field == 2 and isinstance(value, bytes) and len(value) == 4:
            number = float(struct.unpack("<f", value)[0])
        elif field == 8 and isinstance(value, bytes):
            number = _tensor(value)
    return (tag, number) if tag and number is not None else None


def _tensor(data: bytes) -> float | None:
    """A tensor of no dimension, of floats."""
    kind, content = 0, b""
    for field, value in _fields(data):
        if field == 1 and isinstance(value, int):
            kind = value
        elif field == 2 and value:
            return None
        elif field in (4, 5, 6) and isinstance(value, bytes):
            content = value
    form = {_FLOAT: "<f", _DOUBLE: "<d"}.get(kind)
    return float(struct.unpack(form, content)[0]) if form and len(content) == struct.calcsize(form) else None


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        how = key & 7
        if how == 0:
            value, at = _varint(data, at)
            yield key >> 3, value
            continue
        if how == 2:
            size, at = _varint(data, at)
        elif how in _SIZES:
            size = _SIZES[how]
        else:
            raise ValueError(f"a field is written in the unknown way {how}")
        if at + size > len(data):
            raise ValueError("a field is longer than its record")
        yield key >> 3, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise ValueError("a number of more than ten bytes")
