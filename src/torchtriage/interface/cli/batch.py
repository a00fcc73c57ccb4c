"""ask --batch: JSON lines in, JSON lines out."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from torchtriage.core.errors import USAGE
from torchtriage.core.plain import quick
from torchtriage.interface.cli import terminal
from torchtriage.report import route
from torchtriage.triage import heard

# A line nested a thousand deep is one that cannot be read, too.
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class Asked(Struct):
    """One line of the input; the id may be any JSON value and comes back with the answer."""

    text: str
    id: Any = None


class Numbered(Struct):
    """What can still be told of a line that is no question."""

    id: Any | UnsetType = UNSET


def answer(lines: Iterable[bytes]) -> int:
    """Answers each line in its order, at once; the exit code: 2 when there were lines and none could be read."""
    told = [_answered(line, number) for number, line in enumerate(lines, start=1) if line.strip()]
    return USAGE if told and not any(told) else 0


def _answered(line: bytes, number: int) -> bool:
    try:
        asked = msgspec.json.decode(line.removeprefix(BOM_UTF8), type=Asked)
    except UNREADABLE as error:
        _write({"id": _id(line), "error": f"line {number} is no JSON object with a text: {error}"})
        return False
    query, leads = heard(asked.text)
    _write({"id": asked.id, **route.as_dict(query, leads)})
    return True


def _id(line: bytes) -> Any:
    try:
        found = msgspec.json.decode(line, type=Numbered).id
    except UNREADABLE:
        return None
    return None if found is UNSET else found


def _write(value: dict[str, Any]) -> None:
    terminal.result(quick(value) + "\n", "json")
