"""The red flags heard in an agent's draft answer, as JSON and as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from torchtriage.core.plain import SCHEMA, written
from torchtriage.report.paper import PLAIN, Paper
from torchtriage.report.text import count, line

if TYPE_CHECKING:
    from torchtriage.routing.draft import Flag

_NAMES = ("name", "start", "end", "text", "specialist", "sentence")


def as_json(flags: Sequence[Flag]) -> str:
    """FLAGS in the order of the draft."""
    return written({"schema": SCHEMA, "flags": [{name: getattr(flag, name) for name in _NAMES} for flag in flags]})


def render(flags: Sequence[Flag], paper: Paper = PLAIN) -> str:
    """FLAGS in the order of the draft, as text."""
    body = [paper.ink(f"{count(len(flags), 'red flag')} in the draft", "bold")]
    for flag in flags:
        first = f" Goes first to {line(flag.specialist)}." if flag.specialist else ""
        body += paper.fold(f"{line(flag.name)}: “{line(flag.text)}”", 2, mark="- ")
        body += paper.fold(f"{line(flag.sentence)}{first}", 4)
    return "\n".join(body) + "\n"
