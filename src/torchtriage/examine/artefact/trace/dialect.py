"""The structs into which events are decoded, and the phases and categories that a decoder of them knows."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Literal, Union

import msgspec
from msgspec import Raw, Struct

from torchtriage.examine.artefact.trace import words
from torchtriage.examine.artefact.trace.events import NONE

LASTING = "X"
"""The phase of an event that has a duration."""
_FEW = 64
_PHASE = re.compile(rb'"ph"\s*:\s*"([^"\\]{1,8})"')
_CATEGORY = re.compile(rb'"cat"\s*:\s*"([^"\\]{0,80})"')


class Args(
    Struct,
    gc=False,
    frozen=True,
    rename={
        "inside": "External id",
        "call": "correlation",
        "collective": "Collective name",
        "received": "In msg nelems",
        "sent": "Out msg nelems",
        "group": "Process Group Name",
        "ranks": "Process Group Ranks",
        "sequence": "Seq",
        "dims": "Input Dims",
        "types": "Input type",
    },
):
    """What is read of an event's arguments."""

    inside: int = NONE
    call: int = NONE
    bytes: int = 0
    collective: str = ""
    received: int = 0
    sent: int = 0
    group: str = ""
    ranks: Raw = Raw(b"")
    sequence: int = NONE
    dtype: str = ""
    dims: Raw = Raw(b"")
    types: Raw = Raw(b"")


class Event(Struct, gc=False):
    """What is read of an event that lasts. ts, dur: microseconds."""

    cat: str = ""
    name: str = ""
    tid: int | str = 0
    ts: float | None = None
    dur: float | None = None
    args: Args = Args()


class Dialect(Struct, frozen=True):
    """The phases and categories that a trace uses.

    A decoder that knows them makes no text of them, and nothing of events that do not last: half of its time.
    """

    phases: frozenset[str] = frozenset("XsfMi")
    categories: frozenset[str] = frozenset(
        (*words.CATEGORIES, "ac2g", "fwdbwd", "gpu_user_annotation", "overhead", "Trace", "")
    )

    def decoder(self) -> msgspec.json.Decoder[list[Any]]:
        return _decoder(self)

    def learned(self, text: bytes) -> Dialect | None:
        """With what TEXT uses; None where that is nothing new, or more than a profiler would."""
        found = [{each.decode("utf-8", "replace") for each in of.findall(text)} for of in (_PHASE, _CATEGORY)]
        phases, categories = self.phases | found[0], self.categories | found[1]
        is_new = len(phases) + len(categories) > len(self.phases) + len(self.categories)
        return Dialect(phases, categories) if is_new and len(phases) + len(categories) < _FEW * 2 else None


@cache
def _decoder(dialect: Dialect) -> msgspec.json.Decoder[list[Any]]:
    category = Literal[tuple(sorted(dialect.categories))]  # type: ignore[valid-type]
    lasting = msgspec.defstruct(
        "Lasting", [("cat", category, "")], bases=(Event,), gc=False, tag_field="ph", tag=LASTING
    )
    others = [
        msgspec.defstruct(f"Other{number}", [], gc=False, frozen=True, tag_field="ph", tag=phase)
        for number, phase in enumerate(sorted(dialect.phases - {LASTING}))
    ]
    return msgspec.json.Decoder(list[Union[(lasting, *others)]])  # type: ignore[valid-type]
