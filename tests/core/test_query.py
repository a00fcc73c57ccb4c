from __future__ import annotations

import pytest

from torchtriage.core.query import Claim, ClaimKind, Mention, Pressure, PressureKind, Query, Span


@pytest.mark.parametrize(
    ("start", "end", "text"),
    [(-1, 2, "abc"), (3, 3, ""), (4, 2, "ab"), (0, 4, "abc")],
    ids=["before the text", "empty", "backwards", "length differs"],
)
def test_a_span_that_cannot_hold_its_text_is_refused(start: int, end: int, text: str) -> None:
    with pytest.raises(ValueError, match="does not hold"):
        Span(start, end, text)


def test_a_query_keeps_the_words_and_where_each_thing_was_heard() -> None:
    text = "NaN loss, my senior says AMP"
    mention = Mention(0, 8, "NaN loss", symptom="nan-loss", specialist="debugging-techniques")
    claim = Claim(10, 28, "my senior says AMP", kind=ClaimKind.AUTHORITY, answer="It is measured first.")
    query = Query(text, (mention,), (claim,))
    assert [text[s.start : s.end] for s in (*query.symptoms, *query.claims)] == ["NaN loss", "my senior says AMP"]


def test_a_span_of_other_words_is_refused() -> None:
    pressure = Pressure(0, 5, "hurry", kind=PressureKind.TIME, answer="It takes seconds.")
    with pytest.raises(ValueError, match=r"'hurry' does not stand at 0\.\.5"):
        Query("please help", pressures=(pressure,))


def test_there_is_one_pressure_for_each_rationalisation_of_the_source_documents() -> None:
    assert [kind.value for kind in PressureKind] == [
        "time", "authority", "sunk-cost", "exhaustion", "suggestion",
        "confidence", "complexity", "triviality", "helpfulness",
    ]  # fmt: skip
