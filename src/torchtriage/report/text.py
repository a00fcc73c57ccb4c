"""Text that came from a job, a log or a file, made inert for whoever prints it."""

from __future__ import annotations

import re
from functools import cache

_SEQUENCE = (
    r"(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"  # titles, links, device control
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"  # control sequences: colours, cursor, screen
    r"|\x1b[ -/]*[0-~]?"  # what is left of the escapes
)
# Controls, marks that turn the direction of a line, separators that end one, surrogates that no encoding takes.
_CONTROL = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Compiled when a text needs them: a cold `ask` shows our own words only."""
    return re.compile(_SEQUENCE), re.compile(_CONTROL)


def inert(text: str) -> str:
    """TEXT without terminal sequences and control characters; line ends and tabs stay."""
    if text.isprintable():
        return text
    sequence, control = _patterns()
    return control.sub("", sequence.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))


def line(text: str) -> str:
    """TEXT inert and on one line."""
    return " ".join(inert(text).split())


def sentence(text: str) -> str:
    """TEXT on one line, with an end."""
    plain = line(text)
    return plain if plain.endswith((".", "!", "?", ":")) else f"{plain}."


def count(number: int, noun: str) -> str:
    """NUMBER and NOUN, as in 1 finding and 3 findings."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
