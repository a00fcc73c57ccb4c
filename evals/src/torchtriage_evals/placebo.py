"""As many characters as the skill has, about something else: what length alone does to an agent is measured by it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count

_WHO = (
    "The baker",
    "A gardener",
    "The harbour master",
    "An old cartographer",
    "The beekeeper",
    "A joiner",
    "The miller",
)
_DOES = ("looks at", "sets aside", "weighs", "describes", "counts", "sorts", "keeps a list of", "carries", "compares")
_WHAT = ("the ropes", "two loaves", "the early pears", "a box of seeds", "the tide tables", "some planks", "the jars")
_WHEN = ("before breakfast.", "in the autumn.", "on market days.", "when the wind turns.", "once a week.", "at noon.")


def placebo(files: Mapping[str, str]) -> dict[str, str]:
    """For each of FILES one of exactly its length, under a name that says nothing; the first stays the first."""
    return {f"notes/{number:03d}.md": filler(len(text), number) for number, text in enumerate(files.values())}


def filler(length: int, seed: int = 0) -> str:
    """LENGTH characters of plain sentences, in paragraphs of five."""
    said = ""
    for number in count(seed * 31):
        if len(said) >= length:
            break
        parts = (_WHO[number % 7], _DOES[number * 5 % 9], _WHAT[number * 3 // 7 % 7], _WHEN[number // 5 % 6])
        said += " ".join(parts) + ("\n\n" if number % 5 == 4 else " ")
    return said[:length]
