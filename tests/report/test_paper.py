from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchtriage.report.paper import PLAIN, Paper

WORDS = st.lists(st.text("abcdefgh", min_size=1, max_size=12), max_size=40)


@pytest.mark.parametrize(
    ("text", "indent", "mark", "lines"),
    [
        ("", 2, "- ", ["  - "]),
        ("one two", 2, "- ", ["  - one two"]),
        ("one two three four", 2, "- ", ["  - one two", "    three four"]),
        ("a-word-that-is-longer-than-the-paper and", 0, "", ["a-word-that-is-longer-than-the-paper", "and"]),
    ],
)
def test_text_is_folded_between_words(text: str, indent: int, mark: str, lines: list[str]) -> None:
    assert Paper(14).fold(text, indent, mark) == lines


@given(WORDS, st.integers(20, 80), st.integers(0, 6))
def test_folding_loses_no_word_and_keeps_the_width(words: list[str], width: int, indent: int) -> None:
    lines = Paper(width).fold(" ".join(words), indent)
    assert " ".join(lines).split() == words
    assert max(map(len, lines)) <= width


def test_ink_only_where_there_are_colours() -> None:
    assert PLAIN.ink("word", "bold") == "word"
    assert Paper(80, color=True).ink("word", "bold") == "\x1b[1mword\x1b[0m"
