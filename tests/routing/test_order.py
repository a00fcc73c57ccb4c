"""Symptoms become a route: the source documents' tables, and the rules behind them."""

from __future__ import annotations

import re
from typing import Any

import pytest

from torchtriage.catalog.load import read
from torchtriage.core.plan import Plan, Question, Referral, Stage
from torchtriage.core.query import Mention, Query
from torchtriage.routing.build import build
from torchtriage.routing.lexicon import lexicon
from torchtriage.routing.listen import listen
from torchtriage.routing.order import order
from torchtriage.routing.tables import DiagnosisRow, SequenceRow

COMMAND = re.compile(r"(torchtriage (check|run)|python -m zipfile)( [a-z0-9./:=-]+)*")


def planned(text: str) -> Plan:
    route = order(listen(text))
    assert isinstance(route, Plan), route
    return route


def test_the_source_documents_queries_go_where_they_say(seed: tuple[str, tuple[str, ...]]) -> None:
    query, expected = seed
    route = order(listen(query))
    if expected:
        assert isinstance(route, Plan)
        assert route.route == expected
    else:
        assert isinstance(route, Question)


def test_every_scenario_goes_where_its_room_says(scenario: dict[str, Any]) -> None:
    route = order(listen(scenario["query"]))
    match scenario["kind"]:
        case "plan":
            assert isinstance(route, Plan)
            assert list(route.route) == scenario["route"]
        case "question":
            assert isinstance(route, Question)
        case _:
            assert isinstance(route, Referral)
            assert route.refer_to == scenario["refer_to"]


def test_every_symptom_has_scenarios_in_which_it_is_heard(all_scenarios: list[dict[str, Any]]) -> None:
    heard = {each.symptom for row in all_scenarios for each in listen(row["query"]).symptoms}
    assert heard == set(lexicon().symptoms)


def test_a_scenario_that_judges_an_answer_says_what_it_must_and_must_not_do(
    all_scenarios: list[dict[str, Any]],
) -> None:
    judged = [row for row in all_scenarios if "name" in row]
    assert len({row["name"] for row in judged}) == len(judged) >= 12
    assert all(row["must"] and row["must_not"] for row in judged)


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("Fix my PyTorch training", "What do you see"),
        ("Optimize my model", "Optimise what"),
        ("Setup distributed training", "One machine with several GPUs, or several machines"),
        ("Model not working", "What is broken"),
        ("", "What do you see, or what do you want to set up"),
    ],
)
def test_an_ambiguous_query_is_asked_one_question(text: str, question: str) -> None:
    route = order(listen(text))
    assert isinstance(route, Question)
    assert route.question.startswith(question)
    assert route.question.count("?") == 1


def test_a_wrong_route_is_never_taken_first() -> None:
    mistakes = [row for row in (*PRECEDENCE.sequence, *PRECEDENCE.diagnosis) if row.instead_of]
    assert len(mistakes) >= 5
    for row in mistakes:
        assert _route_of(row)[0] != row.instead_of, row.name


PRECEDENCE = build().precedence  # straight from the files: collecting tests writes no cache
ROWS = [*PRECEDENCE.sequence, *PRECEDENCE.diagnosis]


def _route_of(row: SequenceRow | DiagnosisRow) -> tuple[str, ...]:
    """The route of a hand-made query in which just what ROW asks for is heard."""
    heard = row.heard if isinstance(row, SequenceRow) else (row.issue,)
    slugs = [PRECEDENCE.groups.get(name, (name,))[0] for name in heard]
    route = order(_query(*slugs))
    assert isinstance(route, Plan)
    return route.route


def _query(*slugs: str) -> Query:
    """A query that says nothing else than these symptoms."""
    text = " ".join("x" for _ in slugs)
    rooms = lexicon().symptoms
    return Query(
        text,
        tuple(
            Mention(2 * at, 2 * at + 1, "x", symptom=slug, specialist=rooms[slug].specialist)
            for at, slug in enumerate(slugs)
        ),
    )


@pytest.mark.parametrize("row", PRECEDENCE.sequence, ids=[row.name for row in PRECEDENCE.sequence])
def test_a_sequence_leads_where_it_says(row: SequenceRow) -> None:
    steps = tuple(dict.fromkeys(lexicon().symptoms[step.symptom].specialist for step in row.steps))
    assert _route_of(row)[: len(steps)] == steps


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_a_row_of_precedence_holds_together(row: SequenceRow | DiagnosisRow) -> None:
    known, catalog = lexicon(), read()
    steps = row.steps if isinstance(row, SequenceRow) else row.treat
    names = (*row.heard, *row.settles) if isinstance(row, SequenceRow) else (row.issue,)
    assert row.because.endswith(".")
    assert all(step.because.endswith(".") and step.symptom in known.symptoms for step in steps)
    assert all(name in known.symptoms or name in PRECEDENCE.groups for name in names)
    assert all(name in {*catalog.faults, *catalog.verdicts} for step in steps for name in step.opens_on)
    assert all(step.stage is Stage.TREAT for step in steps if step.opens_on)


def test_groups_and_rank_name_what_exists() -> None:
    assert set(PRECEDENCE.rank) == set(read().specialists)
    assert {slug for group in PRECEDENCE.groups.values() for slug in group} <= set(lexicon().symptoms)


def test_the_diagnosis_comes_first_and_the_cure_waits() -> None:
    plan = planned("Training is slow, should I use mixed precision?")
    assert [(step.specialist, step.stage) for step in plan.steps] == [
        ("performance-profiling", Stage.DIAGNOSE),
        ("mixed-precision-and-optimization", Stage.TREAT),
    ]
    assert plan.steps[1].opens_on == ("compute-bound", "bandwidth-bound")
    assert plan.open(()) == plan.steps[:1]


def test_the_memory_room_diagnoses_and_later_treats() -> None:
    plan = planned("CUDA out of memory")
    assert [step.stage for step in plan.steps] == [Stage.DIAGNOSE, Stage.TREAT]
    assert "graph-retained" in plan.steps[0].rule_out
    assert plan.steps[1].opens_on == plan.steps[1].rule_out


def test_a_treatment_without_anything_to_wait_for_is_left_out() -> None:
    assert [step.stage for step in planned("GPU memory usage too high").steps] == [Stage.DIAGNOSE]


def test_more_gpus_wait_until_scale_is_needed() -> None:
    plan = planned("training is too slow, should I just add more GPUs")
    assert plan.steps[-1].opens_on == ("scale-needed",)


def test_a_fault_is_ruled_out_where_its_page_explains_the_symptom() -> None:
    (step, *_) = planned("loss is NaN").steps
    explaining = {fault.slug for fault in read().faults.values() if "nan-loss" in fault.explains}
    assert set(step.rule_out) == explaining != set()


def test_another_room_rules_out_only_its_own_faults() -> None:
    plan = planned("NaN loss with AMP")
    room = {fault.slug for fault in read().faults.values() if fault.specialist == "mixed-precision-and-optimization"}
    assert set(plan.steps[1].rule_out) <= room


def test_a_how_to_query_has_a_page_to_read_and_a_trouble_has_none() -> None:
    assert planned("Set up DDP for 8 GPUs").steps[0].read == "distributed-training-strategies"
    assert planned("loss is NaN").steps[0].read is None


def test_a_proposed_cure_alone_is_a_subject() -> None:
    assert planned("should I use bf16?").route == ("mixed-precision-and-optimization",)


def test_a_proposed_cure_does_not_answer_the_question() -> None:
    assert isinstance(order(listen("My model doesn't work, should I use mixed precision?")), Question)


def test_a_subject_does_not_outweigh_a_referral_but_a_trouble_does() -> None:
    assert isinstance(order(listen("which backbone is best for DDP")), Referral)
    assert isinstance(order(listen("which backbone is best, my loss is NaN")), Plan)


def test_another_framework_decides_unless_it_is_pytorch_after_all() -> None:
    assert isinstance(order(listen("JAX: out of memory")), Referral)
    assert isinstance(order(listen("moved from JAX to PyTorch, now out of memory")), Plan)


def test_two_troubles_without_a_row_are_both_visited_in_rank() -> None:
    assert planned("training is slow and I get OOM").route == ("tensor-operations-and-memory", "performance-profiling")


def test_a_trouble_that_a_sequence_does_not_settle_gets_its_step() -> None:
    assert planned("OOM with DDP on 8 GPUs. Each step takes ages.").route == (
        "distributed-training-strategies",
        "tensor-operations-and-memory",
        "performance-profiling",
    )


def test_a_sequence_of_subjects_does_not_hide_a_trouble() -> None:
    assert planned("save my custom layer, loss is NaN").route[0] == "debugging-techniques"


def test_commands_hold_slugs_and_never_the_users_words(scenario: dict[str, Any]) -> None:
    route = order(listen(scenario["query"] + " --symptom evil; rm -rf"))
    for step in route.steps if isinstance(route, Plan) else ():
        assert all(COMMAND.fullmatch(command) for command in step.examine)
        named = re.findall(r"--symptom (\S+)", " ".join(step.examine))
        assert set(named) <= set(lexicon().symptoms)


@pytest.mark.parametrize("text", ["my cat is slow", "our laptops are slow", "the download is really slow"])
def test_what_is_slow_outside_of_a_training_gets_no_plan(text: str) -> None:
    assert isinstance(order(listen(text)), Question)
