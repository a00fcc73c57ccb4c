from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchtriage.report.text import count, inert, line, sentence


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("plain", "plain"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;a new title\x07after", "after"),
        ("\x1b]8;;http://example.org\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPdevice control\x1b\\after", "after"),
        ("\x9b2Jcleared", "cleared"),
        ("\x9d0;title\x9cafter", "after"),
        ("\x1bcreset", "reset"),
        ("over\rwritten", "over\nwritten"),
        ("bell\x07 back\x08 nul\x00", "bell back nul"),
        ("turned \u202etxt.exe\u202c", "turned txt.exe"),
        ("half \ud800 letter", "half  letter"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("Größe 非数 µs", "Größe 非数 µs"),
    ],
)
def test_terminal_sequences_and_controls_are_taken_out_and_all_else_stays(said: str, shown: str) -> None:
    assert inert(said) == shown


@given(st.text(st.characters(codec=None)))
def test_nothing_that_a_terminal_obeys_is_left_of_any_text(text: str) -> None:
    assert not set(inert(text)) & {chr(code) for code in (*range(9), *range(11, 32), *range(0x7F, 0xA0), 0x202E)}
    assert inert(inert(text)) == inert(text)


@given(st.text())
def test_a_line_is_one_line(text: str) -> None:
    assert len(line(text).splitlines()) <= 1


@pytest.mark.parametrize(("said", "shown"), [("no end", "no end."), ("an end.", "an end."), ("what?", "what?")])
def test_a_sentence_ends_once(said: str, shown: str) -> None:
    assert sentence(said) == shown


@pytest.mark.parametrize(("number", "said"), [(0, "0 findings"), (1, "1 finding"), (2, "2 findings")])
def test_one_is_singular(number: int, said: str) -> None:
    assert count(number, "finding") == said
