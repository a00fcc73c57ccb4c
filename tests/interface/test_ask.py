from __future__ import annotations

import json
from typing import Any

import pytest

NAN = "The loss becomes NaN after 200 steps"


@pytest.mark.parametrize("words", [NAN, "How do I deploy to a phone?", "It does not work", ""])
def test_any_answer_ends_with_0(words: str, call: Any) -> None:
    assert call("ask", "--", words).code == 0


def test_a_query_leads_to_a_plan_as_text_and_as_json(call: Any) -> None:
    text, answer = call("ask", NAN).out, json.loads(call("ask", NAN, "--json").out)
    assert answer["kind"] == "plan"
    assert answer["route"][0] == "debugging-techniques"
    assert all(name in text for name in answer["route"])
    assert call("ask", "--format", "json", NAN).out == call("ask", "--json", NAN).out


@pytest.mark.parametrize("words", [["ask"], ["ask", "-"]])
def test_text_comes_from_stdin_where_none_is_given(words: list[str], call: Any) -> None:
    assert call(*words, stdin=NAN.encode()).out == call("ask", NAN).out


def test_bytes_that_are_no_text_are_read_all_the_same(call: Any) -> None:
    assert call("ask", "-", "--json", stdin=NAN.encode() + b" \xff\xfe").code == 0


def test_a_batch_answers_every_line_in_order_with_its_id(call: Any) -> None:
    lines = [
        json.dumps({"id": "b", "text": NAN}),
        json.dumps({"id": 7, "text": "CUDA out of memory"}),
        "",
        "no json",
        json.dumps({"id": "lost"}),
        json.dumps([1, 2]),
        json.dumps({"id": {"any": "value"}, "text": "slow training", "more": 1}),
    ]
    said = call("ask", "--batch", stdin="\n".join(lines).encode())
    answers = [json.loads(line) for line in said.out.splitlines()]
    assert said.code == 0
    assert [answer["id"] for answer in answers] == ["b", 7, None, "lost", None, {"any": "value"}]
    assert ["error" in answer for answer in answers] == [False, False, True, True, True, False]
    one = json.loads(call("ask", "--json", NAN).out)
    assert answers[0] == {"id": "b", **one}


@pytest.mark.parametrize(("stdin", "code"), [(b"", 0), (b"no json\n{}\n", 2), (b"\xff\xfe\n", 2)])
def test_a_batch_ends_with_2_only_when_it_had_lines_and_none_could_be_read(stdin: bytes, code: int, call: Any) -> None:
    assert call("ask", "--batch", stdin=stdin).code == code


def test_a_draft_shows_its_red_flags(call: Any) -> None:
    draft = "Your loss is NaN, so try a smaller learning rate. No time to profile, just use DDP."
    flags = json.loads(call("ask", "--draft", "--json", draft).out)["flags"]
    assert flags
    assert all(draft[flag["start"] : flag["end"]] == flag["text"] for flag in flags)
    text = call("ask", "--draft", "-", stdin=draft.encode()).out
    assert text.startswith(f"{len(flags)} red flag")
    assert all(flag["name"] in text for flag in flags)


def test_a_long_query_does_not_change_what_was_asked(call: Any) -> None:
    log = ("INFO step 1\n" * 2000) + NAN
    assert call("ask", "-", stdin=log.encode()).code == 0
