"""The opcodes of a pickle one by one, with their places; nothing is executed, and little is kept."""

from __future__ import annotations

import pickletools
import struct
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

from torchtriage.examine.artefact.pickle.nodes import Broken

KEPT = 4096
"""Bytes that are kept of one argument: names of modules, keys and persistent ids are shorter."""
LINE = 2**16
"""Bytes in which a line of the text protocol must end."""
_CHUNK = 2**16


class Source(Protocol):
    """What bytes are read from: fewer than asked for only at its end."""

    def read(self, size: int, /) -> bytes: ...


class Opcode(NamedTuple):
    """name: as pickletools has it. arg: str, bytes, int or float of KEPT bytes at most, or None. at: its first byte."""

    name: str
    arg: Any
    at: int


class _Bytes:
    """SOURCE with a position, read in chunks."""

    def __init__(self, source: Source) -> None:
        self._source, self._data, self._used, self._before = source, b"", 0, 0

    @property
    def at(self) -> int:
        return self._before + self._used

    def one(self) -> int | None:
        """The next byte; None at the end."""
        if self._used == len(self._data) and not self._more():
            return None
        self._used += 1
        return self._data[self._used - 1]

    def take(self, size: int) -> bytes:
        """The next SIZE bytes, of which the first KEPT are returned; raises EOFError where there are fewer."""
        kept = b""
        while size > 0:
            if self._used == len(self._data) and not self._more():
                raise EOFError
            piece = min(size, len(self._data) - self._used)
            if len(kept) < KEPT:
                kept += self._data[self._used : self._used + min(piece, KEPT - len(kept))]
            self._used += piece
            size -= piece
        return kept

    def line(self) -> bytes:
        """Up to the next newline, without it; raises EOFError where none comes within LINE bytes."""
        said = bytearray()
        while (byte := self.one()) != 10:
            if byte is None or len(said) >= LINE:
                raise EOFError
            said.append(byte)
        return bytes(said)

    def _more(self) -> bool:
        self._before += len(self._data)
        self._data, self._used = self._source.read(_CHUNK), 0
        return bool(self._data)


def _number(form: str) -> Callable[[_Bytes], Any]:
    shape = struct.Struct(form)
    return lambda data: shape.unpack(data.take(shape.size))[0]


def _counted(form: str, made: Callable[[bytes], Any]) -> Callable[[_Bytes], Any]:
    """An argument whose length stands before it."""
    length = _number(form)

    def read(data: _Bytes) -> Any:
        size = length(data)
        if size < 0:
            raise Broken(f"says that {size} bytes follow", data.at)
        try:
            return made(data.take(size))
        except EOFError:
            raise Broken(f"says that {size:,} bytes follow, and the file ends at byte {data.at:,}", data.at) from None

    return read


def _text(said: bytes) -> str:
    return said.decode("utf-8", "replace")


def _whole(said: bytes) -> int:
    return int.from_bytes(said, "little", signed=True)


def _line(data: _Bytes) -> str:
    return _text(data.line()[:KEPT])


def _pair(data: _Bytes) -> str:
    return f"{_line(data)} {_line(data)}"


def _decimal(data: _Bytes) -> Any:
    said = data.line()[:20]
    try:
        return int(said.strip(b"L"))
    except ValueError:
        return _text(said)


_ARGUMENTS: dict[str, Callable[[_Bytes], Any]] = {
    "uint1": _number("B"), "uint2": _number("<H"), "int4": _number("<i"), "uint4": _number("<I"),
    "uint8": _number("<Q"), "float8": _number(">d"),
    "long1": _counted("B", _whole), "long4": _counted("<i", _whole),
    "string1": _counted("B", _text), "string4": _counted("<i", _text),
    "bytes1": _counted("B", bytes), "bytes4": _counted("<I", bytes), "bytes8": _counted("<Q", bytes),
    "bytearray8": _counted("<Q", bytes),
    "unicodestring1": _counted("B", _text), "unicodestring4": _counted("<I", _text),
    "unicodestring8": _counted("<Q", _text),
    "stringnl": _line, "stringnl_noescape": _line, "stringnl_noescape_pair": _pair, "unicodestringnl": _line,
    "decimalnl_short": _decimal, "decimalnl_long": _decimal, "floatnl": _line,
}  # fmt: skip
_TABLE = {
    ord(each.code): (each.name, _ARGUMENTS[each.arg.name] if each.arg is not None else None)
    for each in pickletools.opcodes
}


def opcodes(source: Source) -> Iterator[Opcode]:
    """The opcodes from SOURCE up to and with STOP; raises Broken where the bytes are none.

    Memory stays bounded whatever the bytes say: of an argument KEPT bytes are kept, the others are passed over.
    """
    data = _Bytes(source)
    while True:
        at = data.at
        code = data.one()
        if code is None:
            raise Broken(f"the file ends at byte {at:,}, before the pickle does", at)
        if code not in _TABLE:
            raise Broken(f"there is no opcode {bytes([code])!r}, as byte {at:,} would be", at)
        name, argument = _TABLE[code]
        try:
            arg = argument(data) if argument is not None else None
        except EOFError:
            raise Broken(f"the file ends within {name} at byte {at:,}", at) from None
        except Broken as broken:
            raise Broken(f"{name} at byte {at:,} {broken.why}", at) from None
        yield Opcode(name, arg, at)
        if name == "STOP":
            return
