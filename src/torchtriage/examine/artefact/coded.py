"""Text that is not UTF-8, as PowerShell's > and some services write it, told by its byte order mark."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


def utf8(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """CHUNKS of a text as UTF-8 without a mark; what has no mark stays as it is."""
    decoder: codecs.IncrementalDecoder | None = None
    for number, chunk in enumerate(chunks):
        piece = chunk
        if number == 0:
            mark, name = next(((mark, name) for mark, name in _MARKS if chunk.startswith(mark)), (b"", ""))
            piece = chunk[len(mark) :]
            decoder = codecs.getincrementaldecoder(name)("replace") if name.startswith("utf-16") else None
        yield decoder.decode(piece).encode("utf-8", "replace") if decoder else piece
    if decoder and (rest := decoder.decode(b"", final=True)):
        yield rest.encode("utf-8", "replace")
