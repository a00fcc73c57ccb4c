"""Pressure, politeness, claims and manner never change where a query leads."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from torchtriage.core.plan import Plan, Route, Stage
from torchtriage.core.query import PressureKind
from torchtriage.routing.listen import listen
from torchtriage.routing.order import order
from torchtriage.routing.selfcheck import check

PRESSURES = {
    PressureKind.TIME: ["It is urgent.", "The deadline is tonight.", "I need it in 10 minutes."],
    PressureKind.AUTHORITY: ["My boss insists.", "A senior engineer told me so."],
    PressureKind.SUNK_COST: ["I have tried everything.", "Nothing works.", "I have spent days on it."],
    PressureKind.EXHAUSTION: ["I'm exhausted.", "I'm so tired."],
    PressureKind.SUGGESTION: ["I was going to guess.", "How about it?"],
    PressureKind.CONFIDENCE: ["I'm pretty sure.", "Definitely."],
    PressureKind.COMPLEXITY: ["It is too complicated.", "Everything at once."],
    PressureKind.TRIVIALITY: ["Just a quick question.", "It is a simple issue."],
    PressureKind.HELPFULNESS: ["Just tell me.", "Please guess.", "Give me a fix."],
}
CLAIMS = [
    "I think it is the scheduler.",
    "I blame the weather.",
    "My senior says it must be the driver.",
    "I already tried a smaller batch.",
    "I tried AMP.",
    "It must be NCCL.",
]
CURES = [
    "Should I use mixed precision?",
    "Would gradient checkpointing help?",
    "Should I add more GPUs?",
    "My manager wants DDP.",
]
MANNERS = ["Hello everybody!", "Thank you so much.", "Sorry to bother you.", "Have a nice day.", "Please."]


def _route(text: str) -> Route:
    return order(listen(text))


def _same(one: Route, other: Route) -> bool:
    """The same kind, and for a plan the same specialists at the same stages."""
    if isinstance(one, Plan) and isinstance(other, Plan):
        return [(s.specialist, s.stage) for s in one.steps] == [(s.specialist, s.stage) for s in other.steps]
    return type(one) is type(other)


def test_every_pressure_is_heard_in_its_words() -> None:
    for kind, sayings in PRESSURES.items():
        for saying in sayings:
            assert kind in {each.kind for each in listen(saying).pressures}, saying


def test_no_pressure_claim_or_manner_changes_a_scenarios_route(scenario: dict[str, Any]) -> None:
    query, expected = scenario["query"], _route(scenario["query"])
    for added in (*(saying for sayings in PRESSURES.values() for saying in sayings), *CLAIMS, *MANNERS):
        assert _same(_route(f"{query}\n\n{added}"), expected), added
        assert _same(_route(f"{added}\n\n{query}"), expected), added


def test_upper_case_and_punctuation_do_not_change_a_scenarios_route(scenario: dict[str, Any]) -> None:
    query, expected = scenario["query"], _route(scenario["query"])
    for said in (query.upper(), query + "!!!", query + "?", query + " ...", f"  {query}\n\n"):
        assert _same(_route(said), expected), said


def test_a_proposed_cure_at_most_adds_a_treatment_that_waits(scenario: dict[str, Any]) -> None:
    expected = _route(scenario["query"])
    for cure in CURES:
        route = _route(f"{scenario['query']}\n\n{cure}")
        assert type(route) is type(expected), cure
        if isinstance(route, Plan) and isinstance(expected, Plan):
            before = [(s.specialist, s.stage) for s in expected.steps if s.stage is not Stage.TREAT]
            assert [(s.specialist, s.stage) for s in route.steps if s.stage is not Stage.TREAT] == before, cure


SAYINGS = [saying for each in PRESSURES.values() for saying in each] + CLAIMS + MANNERS


def test_any_heap_of_sayings_leaves_the_route_alone(all_scenarios: list[dict[str, Any]]) -> None:
    @given(st.lists(st.sampled_from(SAYINGS), max_size=8), st.sampled_from([row["query"] for row in all_scenarios]))
    def holds(heap: list[str], query: str) -> None:
        assert _same(_route("\n\n".join([*heap, query, *heap])), _route(query))

    holds()


def test_the_self_check_passes_for_every_scenario_as_routed(scenario: dict[str, Any]) -> None:
    query = listen(scenario["query"])
    assert all(each.passed for each in check(query, order(query)))
