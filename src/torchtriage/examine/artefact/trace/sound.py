"""A summary that can go from one process to another, whatever stood in its trace."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from torchtriage.examine.artefact.trace.rank import RankSummary

_MOST = 2**63 - 1


def sound(told: RankSummary) -> RankSummary:
    """TOLD, in which half of a pair of surrogates is a question mark and no number is beyond 64 bits.

    Its path stays as it is: it need not be text.
    """
    bare = replace(told, path="")
    try:
        msgspec.msgpack.encode(bare)
    except (OverflowError, UnicodeEncodeError):
        mended = msgspec.convert(_sound(msgspec.to_builtins(bare)), RankSummary)
        return replace(mended, path=told.path)
    return told


def _sound(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, int):
        return max(min(value, _MOST), -_MOST)
    if isinstance(value, dict):
        return {_sound(name): _sound(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_sound(each) for each in value]
    return value
