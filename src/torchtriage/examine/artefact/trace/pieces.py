"""The text of a trace, cut where one event ends and the next begins, whatever its layout."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

SIZE = 2**18
"""Bytes in a piece: what is made of it stays in a processor's cache, which is half of the time (2**22: 1.5 times)."""
HEAD = 2**24
"""Bytes in which the list of events has to begin."""
LONGEST = 2**25
"""Bytes without the end of an event after which nothing is looked for any more."""
_EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[')
_SEAM = re.compile(rb"\}\s*,\s*(?=\{)")
_END = re.compile(rb"\}\s*\]")
_BLANK = b" \t\r\n"


class Pieces:
    """The events of a trace as complete pieces of text, each with its offset in the file.

    head, tail: the text before and after the events. broken: the file ended before the list of events did.
    A piece may end inside of an event that holds a list of objects; whoever decodes it then takes the next one to it.
    """

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read = read
        self.head, self.tail, self.broken = b"", b"", False
        self._buffer, self._offset = b"", 0
        self.found = self._start()

    def _start(self) -> bool:
        """Reads up to the first event; False where there is no list of events."""
        text = self._read(SIZE)
        while True:
            begun = text.removeprefix(b"\xef\xbb\xbf").lstrip(_BLANK)
            if begun[:1] == b"[":
                at = text.index(b"[") + 1
                break
            if found := _EVENTS.search(text):
                at = found.end()
                break
            more = self._read(SIZE)
            if not more or len(text) > HEAD:
                self.head = text
                return False
            text += more
        self.head, self._buffer, self._offset = text[:at], text[at:], at
        return True

    def __iter__(self) -> Iterator[tuple[int, bytes, bool]]:
        while True:
            more = self._read(SIZE)
            self._buffer = self._buffer + more if more else self._buffer
            if not more or len(self._buffer) > LONGEST:
                yield self._offset, self._buffer, True
                return
            if cut := _seam(self._buffer):
                piece, self._buffer = self._buffer[: cut[0]], self._buffer[cut[1] :]
                yield self._offset, piece, False
                self._offset += cut[1]

    def fields(self) -> dict[str, Any]:
        """What the trace says beside its events; what does not read as JSON is left out."""
        return {
            **_object(self.head.removeprefix(b"\xef\xbb\xbf").strip(), b"]}"),
            **_object(b"{" + self.tail.lstrip(b"], \t\r\n"), b""),
        }


def ending(text: bytes) -> bytes:
    """What follows the list of events, with its bracket; empty where the list has no end in TEXT."""
    for found in _END.finditer(text, max(text.rfind(b'"ph"'), 0)):
        rest = text[found.end() - 1 :]
        if rest.strip(b"]} \t\r\n") == b"" or _object(b"{" + rest.lstrip(b"], \t\r\n"), b""):
            return rest
    return b""


def _seam(text: bytes) -> tuple[int, int] | None:
    """Where the last event that is followed by another one ends, and where that begins."""
    mark = text.rfind(b'"ph"')
    # by the key that Kineto writes first, else by looking at every seam of the last part
    for begin in (max(mark - 200, 0), max(len(text) - 2 * SIZE, 0)):
        seams = [found.span() for found in _SEAM.finditer(text, begin)]
        if seams:
            return seams[-1][0] + 1, seams[-1][1]
    return None


def _object(text: bytes, closing: bytes) -> dict[str, Any]:
    if not text.startswith(b"{") or len(text) < 3:
        return {}
    try:
        read = json.loads(text + closing)
    except (ValueError, RecursionError):
        return {}
    return {str(key): value for key, value in read.items() if key != "traceEvents"} if isinstance(read, dict) else {}
