"""The program of a process that sums up files, one after the other, and what it says of each."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from torchtriage.examine.artefact.engines import Told, resolved, said

LENGTH = 8  # bytes, big-endian, before each message
READY = b"ready"


class Answer(Struct, frozen=True, array_like=True):
    """A summary as bytes, without its path, which need not be text; or why there is none."""

    value: bytes = b""
    why: str = ""
    do: str = ""


def answered(function: str, path: bytes, folder: bytes = b"") -> bytes:
    """The Answer of FUNCTION ("module:name") to the file at PATH, relative to FOLDER.

    Without enough memory the process ends: the file is read again where there is more.
    """
    if folder:
        with suppress(OSError):  # a URL needs none, and a file that is not there will say so
            os.chdir(folder)
    try:
        value: Any = resolved(function)(os.fsdecode(path))
        return msgspec.msgpack.encode(Answer(msgspec.msgpack.encode(replace(value, path=""))))
    except MemoryError:
        os._exit(1)
    except Exception as error:  # noqa: BLE001 - it is the answer
        return msgspec.msgpack.encode(Answer(b"", *said(error)))


def heard(answer: bytes, path: str, shape: type[Any]) -> Told:
    """What an ANSWER says of the file at PATH."""
    told = msgspec.msgpack.decode(answer, type=Answer)
    if told.why:
        return Told(why=told.why, do=told.do)
    value: Any = msgspec.msgpack.decode(told.value, type=shape)
    return Told(replace(value, path=path))


def main() -> None:
    """ARGV[1]: the function. Reads paths and writes answers, each with its length before it."""
    given, taken = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a package prints is no answer
    resolved(sys.argv[1])
    _write(taken, READY)
    while len(length := given.read(LENGTH)) == LENGTH:
        _write(taken, answered(sys.argv[1], given.read(int.from_bytes(length, "big"))))


def _write(to: Any, data: bytes) -> None:
    to.write(len(data).to_bytes(LENGTH, "big") + data)
    to.flush()
