"""The directory of a zip file, read by itself: of a checkpoint of 500 MB some kilobytes; and its entries one by one."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from torchtriage.examine.artefact.checkpoint.sources import Damaged, Source
from torchtriage.examine.artefact.opened import RATIO

MOST = 2**28
"""Bytes of a directory, and of an entry that is read whole."""
_END, _END64, _ENTRY, _LOCAL, _AFTER = (b"PK" + each for each in (b"\5\6", b"\6\6", b"\1\2", b"\3\4", b"\7\x08"))
_FROM = 2**20
_NEAR, _FAR = 1024, 66_000  # a comment behind the end record has at most 65,535 bytes
_FULL = 0xFFFFFFFF


class Entry(NamedTuple):
    """A file in the archive. at: of its local header; packed, size: its bytes there and as a file; method: 0 stored."""

    name: str
    at: int
    packed: int
    size: int
    method: int
    crc: int


def entries(source: Source) -> tuple[Entry, ...]:
    """The directory of SOURCE, in its order; raises Damaged where there is none or it does not hold."""
    count, size, start = _end(source)
    if start + size > source.size or size > MOST:
        raise Damaged(
            f"its directory of {size:,} bytes at byte {start:,} does not fit into {source.size:,} bytes", start
        )
    data = source.at(start, size)
    found: list[Entry] = []
    at = 0
    while at < len(data) and len(found) < count:
        entry, at = _entry(data, at, start)
        found.append(entry)
    if len(found) != count:
        raise Damaged(f"its directory tells of {count:,} entries and holds {len(found):,}", start)
    return tuple(found)


def _end(source: Source) -> tuple[int, int, int]:
    """Entries, size and place of the directory."""
    for span in (_NEAR, _FAR):
        start = max(0, source.size - span)
        tail = source.at(start, span)
        at = tail.rfind(_END)
        if at >= 0 and len(tail) - at >= 22:
            break
    else:
        raise Damaged("the directory at its end is not there: it was cut off, or never written to its end", source.size)
    count, size, place = struct.unpack_from("<HII", tail, at + 10)
    older = tail.rfind(_END64, 0, at)
    if 0xFFFF in (count,) or _FULL in (size, place) or older >= 0:
        if older < 0 or len(tail) - older < 56:
            raise Damaged("the end record that large archives have is not there", start + at)
        count, size, place = struct.unpack_from("<QQQ", tail, older + 32)
    return count, size, place


def _entry(data: bytes, at: int, start: int) -> tuple[Entry, int]:
    if data[at : at + 4] != _ENTRY or len(data) - at < 46:
        raise Damaged("an entry of its directory is damaged", start + at)
    (method,) = struct.unpack_from("<H", data, at + 10)
    crc, packed, size, named, extra, comment = struct.unpack_from("<IIIHHH", data, at + 16)
    (local,) = struct.unpack_from("<I", data, at + 42)
    name = data[at + 46 : at + 46 + named].decode("utf-8", "replace")
    wide = _wide(data[at + 46 + named : at + 46 + named + extra])
    size = next(wide, size) if size == _FULL else size
    packed = next(wide, packed) if packed == _FULL else packed
    local = next(wide, local) if local == _FULL else local
    return Entry(name, local, packed, size, method, crc), at + 46 + named + extra + comment


def _wide(extra: bytes) -> Iterator[int]:
    """The numbers of 64 bits that an entry has where 32 are too few, in the order of the format."""
    at = 0
    while at + 4 <= len(extra):
        kind, size = struct.unpack_from("<HH", extra, at)
        if kind == 1:
            whole = extra[at + 4 : at + 4 + size]
            yield from (struct.unpack_from("<Q", whole, place)[0] for place in range(0, len(whole) - 7, 8))
        at += 4 + size


def start(source: Source, entry: Entry) -> int:
    """The first byte of the data of ENTRY; raises Damaged where its own header is not there."""
    head = source.at(entry.at, 30)
    if len(head) < 30 or head[:4] != _LOCAL:
        raise Damaged(
            f"the header of {entry.name} is not at byte {entry.at:,}, where the directory says it is", entry.at
        )
    named, extra = struct.unpack_from("<HH", head, 26)
    return int(entry.at + 30 + named + extra)


def content(source: Source, entry: Entry) -> bytes:
    """ENTRY read whole and held against its checksum; raises Damaged."""
    if max(entry.size, entry.packed) > MOST:
        raise Damaged(
            f"{entry.name} says that it has {entry.size:,} bytes, more than the {MOST:,} that are read", entry.at
        )
    if entry.size > max(_FROM, RATIO * entry.packed):
        why = f"{entry.name} would unpack to {entry.size:,} bytes, more than {RATIO} times its size: not unpacked"
        raise Damaged(why, entry.at)
    at = start(source, entry)
    data = source.at(at, entry.packed)
    if len(data) < entry.packed:
        raise Damaged(f"{entry.name} should have {entry.packed:,} bytes and the file ends after {len(data):,}", at)
    data = data if entry.method == 0 else _unpacked(data, entry, at)
    if len(data) != entry.size or (entry.crc and zlib.crc32(data) != entry.crc):
        raise Damaged(f"the checksum of {entry.name} does not agree with its {len(data):,} bytes", at)
    return data


def _unpacked(data: bytes, entry: Entry, at: int) -> bytes:
    if entry.method != 8:
        raise Damaged(f"{entry.name} is packed by method {entry.method}, which torch does not write", at)
    try:
        return zlib.decompressobj(-15).decompress(data, min(entry.size, MOST) + 1)
    except zlib.error as error:
        raise Damaged(f"{entry.name} cannot be unpacked: {error}", at) from error


def first(source: Source) -> tuple[str, int]:
    """The name of the first entry and the first byte of its data, from its own header: the directory may be lost."""
    head = source.at(0, 512)
    if head[:4] != _LOCAL or len(head) < 30:
        return "", 0
    named, extra = struct.unpack_from("<HH", head, 26)
    return head[30 : 30 + named].decode("utf-8", "replace"), 30 + named + extra


def rescued(source: Source, at: int, sizes: Mapping[str, int]) -> dict[str, int]:
    """Entries that lie whole from byte AT on, where the directory is lost: their names, and the bytes of their data.

    SIZES: bytes of an entry by the end of its name, for those that do not tell it in their own header; of others the
    mark behind their data is looked for near by.
    """
    found: dict[str, int] = {}
    while True:
        head = source.at(at, 512)
        if len(head) < 30 or head[:4] != _LOCAL:
            return found
        (packed,) = struct.unpack_from("<I", head, 18)
        named, extra = struct.unpack_from("<HH", head, 26)
        name = head[30 : 30 + named].decode("utf-8", "replace")
        begin = at + 30 + named + extra
        size = sizes.get(name.partition("/")[2], packed or None)
        size = source.at(begin, 4096).find(_AFTER) if size is None else size
        behind = source.at(begin + size, 24) if size >= 0 else b""
        if len(behind) < 16 or behind[:4] not in (_AFTER, _LOCAL, _ENTRY):
            return found
        found[name] = begin
        at = begin + size + _skipped(behind, size)


def _skipped(behind: bytes, size: int) -> int:
    """Bytes of the record between the data of an entry and the next header: sizes of 32 bits in it, or of 64."""
    if behind[:4] != _AFTER:
        return 0
    return 24 if len(behind) == 24 and struct.unpack_from("<Q", behind, 8)[0] == size and size == _later(behind) else 16


def _later(behind: bytes) -> int:
    return int(struct.unpack_from("<Q", behind, 16)[0])
