from __future__ import annotations

import pytest
from msgspec.structs import replace

from torchtriage.core.case import Case
from torchtriage.core.plan import Plan
from torchtriage.core.query import Query
from torchtriage.report.paper import Paper
from torchtriage.report.route import as_dict, render

KEYS = [
    "schema", "kind", "route", "steps", "symptoms", "claims", "pressures", "answers", "decoded",
    "question", "options", "refer_to", "because", "leaning", "passed_over",
]  # fmt: skip


@pytest.mark.parametrize(("name", "kind"), [("planned", "plan"), ("question", "question"), ("referral", "referral")])
def test_every_answer_has_the_keys_of_the_interface_in_their_order(
    name: str, kind: str, cases: dict[str, Case]
) -> None:
    query, route = cases[name].query, cases[name].route
    assert query is not None
    assert route is not None
    answer = as_dict(query, route)
    assert list(answer) == KEYS
    assert answer["kind"] == kind
    assert bool(answer["route"]) == bool(answer["steps"]) == (kind == "plan")
    assert (answer["question"] is not None) == bool(answer["options"]) == (kind == "question")
    assert (answer["refer_to"] is not None) == (kind == "referral")


def test_a_step_holds_what_the_interface_names(query: Query, plan: Plan) -> None:
    first, _ = as_dict(query, plan)["steps"]
    assert list(first) == ["specialist", "stage", "because", "collect", "rule_out", "examine", "opens_on"]


def test_a_step_to_read_names_its_page(query: Query, plan: Plan) -> None:
    reading = Plan((replace(plan.steps[0], read="mixed-precision-use"),))
    assert as_dict(query, reading)["steps"][0]["read"] == "mixed-precision-use"
    assert "read      mixed-precision-use" in render(query, reading)


def test_pressures_and_claims_are_answered_once_each(query: Query, plan: Plan) -> None:
    loud = replace(query, pressures=query.pressures * 3)
    answer = as_dict(loud, plan)
    assert answer["pressures"] == ["authority", "time"]
    assert [item["to"] for item in answer["answers"]] == ["authority", "time", "guessed-cause"]


def test_what_was_heard_keeps_its_place_in_the_text(query: Query, plan: Plan) -> None:
    answer = as_dict(query, plan)
    for heard in (*answer["symptoms"], *answer["claims"], *answer["decoded"]):
        assert query.text[heard["start"] : heard["end"]] == heard["text"]


def test_colours_only_where_the_paper_takes_them(query: Query, plan: Plan) -> None:
    assert "\x1b[" not in render(query, plan)
    assert "\x1b[1m" in render(query, plan, Paper(80, color=True))


@pytest.mark.parametrize("width", [60, 80])
def test_no_line_but_a_command_is_wider_than_the_paper(width: int, query: Query, plan: Plan) -> None:
    lines = [line for line in render(query, plan, Paper(width)).splitlines() if "$" not in line]
    assert max(map(len, lines)) <= width
