"""xxh3 of what is written and of what is read: 128 bits, 10 GB a second and more."""

from __future__ import annotations

from typing import Any

from torchtriage.core.errors import TriageError


def new() -> Any:
    """A hash to be fed by `update`; raises TriageError where xxhash is not installed."""
    try:
        from xxhash import xxh3_128
    except ImportError as error:
        raise TriageError(
            "xxhash is not installed, which guards a checkpoint's bytes",
            "TrainingState",
            "pip install 'torchtriage[toolkit]'.",
        ) from error
    return xxh3_128()


def of(*pieces: bytes | memoryview) -> str:
    """The hash of PIECES one after another, as 32 hexadecimal digits."""
    made = new()
    for piece in pieces:
        made.update(piece)
    return str(made.hexdigest())
