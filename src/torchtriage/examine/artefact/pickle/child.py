"""The program of the process in which pickles are taken apart: it reads them from its input and answers in JSON.

It gets no path and needs none. Before the first byte is read it gives up what it could do harm with: memory and CPU
time beyond its limits, writing to files, other processes; a hook refuses what is left.
"""

from __future__ import annotations

import gc
import io
import json
import os
import pickle
import sys
from contextlib import suppress
from importlib import import_module
from math import ceil
from time import process_time
from typing import IO, Any, NoReturn

LENGTH = 8  # bytes, big-endian, before each pickle that is one of many and before each answer
ENDED = 77  # the exit code of a process that tried what it may not
_REFUSED = ("os.", "subprocess.", "socket.", "shutil.", "ctypes.", "pty.", "import", "urllib.", "ftplib.", "sqlite3.")


class Inert(pickle.Unpickler):
    """An unpickler for plain containers, numbers and strings: a pickle that asks for anything by name is refused."""

    def find_class(self, module: str, name: str, /) -> NoReturn:
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")

    def persistent_load(self, pid: object, /) -> NoReturn:
        raise pickle.UnpicklingError(f"it asks for a persistent id of type {type(pid).__name__}")


def main() -> None:
    """ARGV[1]: {"work": "module:function", "memory": bytes, "seconds": of CPU time for one pickle, "whole": whether the
    input is one; else they are many, each with its length before it}.
    """
    order = json.loads(sys.argv[1])
    module, _, name = order["work"].partition(":")
    home = import_module(module)
    work = getattr(home, name)
    if hasattr(home, "SAMPLE"):
        work(home.SAMPLE, 2**20)  # what it imports, it imports now
    given = os.fdopen(os.dup(0), "rb", buffering=2**20)
    _limit({"AS": order["memory"], "FSIZE": 0, "CORE": 0, "NPROC": 0})
    sys.addaudithook(_watch)
    gc.disable()  # plain containers of a file refer to each other in no circles that matter: the process ends anyway
    _time(order["seconds"])
    if order["whole"]:
        given.seek(0)
        _answer(_told(work, given, os.fstat(0).st_size, order["memory"]))
    else:
        while (data := _next(given)) is not None:
            _answer(_told(work, io.BytesIO(data), len(data), order["memory"]))
            _time(order["seconds"])
    os._exit(0)  # without taking a million objects down one by one


def _told(work: Any, file: IO[bytes], size: int, memory: int) -> dict[str, Any]:
    """What WORK makes of the plain data in FILE; or why there is none."""
    try:
        loaded = Inert(file).load()
    except MemoryError:
        return {"refused": f"to unpickle it takes more than {memory / 2**30:.1f} GiB of memory"}
    except Exception as error:  # noqa: BLE001 - a hostile pickle may raise anything
        return {"refused": _said(error)}
    try:
        return {"value": work(loaded, size)}
    except MemoryError:
        return {"refused": f"to look through it takes more than {memory / 2**30:.1f} GiB of memory"}
    except Exception as error:  # noqa: BLE001 - data of another shape than expected may raise anything
        return {"strange": _said(error)}


def _said(error: Exception) -> str:
    text = str(error)[:300]
    return text if isinstance(error, pickle.UnpicklingError) and text else f"{type(error).__name__}: {text}"


def _answer(told: dict[str, Any]) -> None:
    try:
        data = json.dumps(told).encode()
    except (ValueError, TypeError, RecursionError) as error:
        data = json.dumps({"strange": _said(error)}).encode()
    left = memoryview(len(data).to_bytes(LENGTH, "big") + data)
    while left:
        left = left[os.write(1, left) :]


def _next(given: IO[bytes]) -> bytes | None:
    """The bytes of the next pickle; None where there are no more."""
    length = given.read(LENGTH)
    return given.read(int.from_bytes(length, "big")) if len(length) == LENGTH else None


def _time(seconds: int) -> None:
    """SECONDS of CPU time from now on; then the system ends the process with SIGXCPU."""
    _limit({"CPU": ceil(process_time()) + seconds})


def _limit(limits: dict[str, int]) -> None:
    """As far as the system has limits: Windows has none, macOS none on memory."""
    try:
        import resource
    except ImportError:
        return
    for name, most in limits.items():
        which = getattr(resource, f"RLIMIT_{name}", None)
        if which is not None:
            hard = resource.getrlimit(which)[1]
            soft = most if hard == resource.RLIM_INFINITY else min(most, hard)
            with suppress(ValueError, OSError):
                resource.setrlimit(which, (soft, hard))


def _watch(event: str, args: tuple[Any, ...]) -> None:
    """Ends the process at anything that reading plain data never does."""
    written = event == "open" and any(letter in str(args[1]) for letter in "wax+")
    if written or event.startswith(_REFUSED) or event in {"exec", "compile", "marshal.loads"}:
        os._exit(ENDED)
