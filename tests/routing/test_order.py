"""Symptoms become a route: the source documents' tables, and the rules behind them."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from torchtriage.catalog.load import read
from torchtriage.core.plan import Plan, Question, Referral, Route, Stage
from torchtriage.core.query import Decoded, Leaning, Mention, Query
from torchtriage.routing import steps
from torchtriage.routing.build import build
from torchtriage.routing.compiled import lexicon
from torchtriage.routing.hear import hear
from torchtriage.routing.leaning import weights
from torchtriage.routing.listen import listen
from torchtriage.routing.order import (
    GENERAL,
    HEARD,
    JOINS,
    LEAVES,
    MESSAGE,
    NAMED,
    by_phrases,
    leads,
    order,
)
from torchtriage.routing.steps import subject_of
from torchtriage.routing.tables import DiagnosisRow, SequenceRow

COMMAND = re.compile(r"torchtriage (check|gradcheck|read|repro|resume-check|run)( [a-z0-9./:=-]+)*")


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
    assert [(step.specialist, step.stage, step.opens_on) for step in plan.steps] == [
        ("performance-profiling", Stage.DIAGNOSE, ()),
        ("performance-profiling", Stage.TREAT, ("input-bound",)),
        ("mixed-precision-and-optimization", Stage.TREAT, ("compute-bound", "bandwidth-bound")),
    ]
    assert plan.open(()) == plan.steps[:1]


def test_the_memory_room_diagnoses_and_later_treats() -> None:
    plan = planned("CUDA out of memory")
    assert [step.stage for step in plan.steps] == [Stage.DIAGNOSE, Stage.TREAT]
    assert "graph-retained" in plan.steps[0].rule_out
    assert plan.steps[1].opens_on == plan.steps[1].rule_out


def test_a_treatment_without_anything_to_wait_for_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    subject = subject_of(listen("GPU memory usage too high"))
    assert [step.stage for step in steps.planned(subject).steps] == [Stage.DIAGNOSE, Stage.TREAT]
    bare = replace(lexicon(), explained=dict.fromkeys(lexicon().explained, ()))
    monkeypatch.setattr(steps, "lexicon", lambda: bare)
    assert [step.stage for step in steps.planned.__wrapped__(subject).steps] == [Stage.DIAGNOSE]


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


@pytest.mark.parametrize(
    "text", ["my React app is slow", "Excel hangs with my spreadsheet", "our Postgres query takes 3 s"]
)
def test_other_software_is_referred(text: str) -> None:
    assert isinstance(order(listen(text)), Referral)


@pytest.mark.parametrize(
    "text", ["our website classifier training is slow", "training reads from Postgres and is slow"]
)
def test_a_training_that_touches_other_software_is_ours(text: str) -> None:
    assert order(listen(text)).steps[0].specialist == PERFORMANCE


# Where the words as a whole lean.

PERFORMANCE, PRECISION = "performance-profiling", "mixed-precision-and-optimization"
DEBUGGING, MEMORY = "debugging-techniques", "tensor-operations-and-memory"


def _leaning(to: str, share: float = 1.0, **rooms: float) -> Leaning:
    return Leaning(to, share, (), {name.replace("_", "-"): each for name, each in rooms.items()})


def _visits(route: Route) -> list[tuple[str, str]]:
    assert isinstance(route, Plan), route
    return [(step.specialist, step.stage.value) for step in route.steps]


def _by_phrases(query: Query) -> Route:
    return by_phrases(subject_of(query), hear(query.text))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("the loss is NaN", DEBUGGING),
        ("It does not work", "question"),
        ("JAX: out of memory", "referral other-framework"),
    ],
)
def test_a_route_has_the_name_that_a_leaning_to_it_would_have(text: str, name: str) -> None:
    assert leads(_by_phrases(listen(text))) == name


@pytest.mark.parametrize("slugs", [("nan-loss",), ("training-slow", "mixed-precision-use"), ()])
def test_without_a_leaning_the_phrases_make_the_route(slugs: tuple[str, ...]) -> None:
    query = _query(*slugs)
    assert order(query) == _by_phrases(query)


@pytest.mark.parametrize("slugs", [("nan-loss",), ("training-slow", "mixed-precision-use")])
def test_a_leaning_to_where_the_phrases_lead_changes_nothing(slugs: tuple[str, ...]) -> None:
    query = _query(*slugs)
    first = leads(_by_phrases(query))
    assert order(replace(query, leaning=_leaning(first))) == _by_phrases(query)


@pytest.mark.parametrize(
    ("share", "told", "first"),
    [(0.05, False, DEBUGGING), (0.95, False, PERFORMANCE), (0.05, True, DEBUGGING), (0.95, True, PERFORMANCE)],
)
def test_only_a_leaning_that_is_strong_enough_decides_against_the_phrases(share: float, told: bool, first: str) -> None:
    query = _query("nan-loss")
    decoded = (Decoded(0, 1, "x", signature="matmul-shapes", fields={}, faults=()),) if told else ()
    route = order(replace(query, decoded=decoded, leaning=_leaning(PERFORMANCE, share)))
    assert leads(route) == first


def test_a_message_asks_for_a_stronger_leaning_than_phrases_do() -> None:
    assert HEARD < MESSAGE
    query, leaning = _query("nan-loss"), _leaning(PERFORMANCE, (HEARD + MESSAGE) / 2)
    message = Decoded(0, 1, "x", signature="matmul-shapes", fields={}, faults=())
    assert leads(order(replace(query, leaning=leaning))) == PERFORMANCE
    assert leads(order(replace(query, decoded=(message,), leaning=leaning))) == DEBUGGING


@pytest.mark.parametrize(("share", "first"), [(NAMED - 0.01, "referral other-framework"), (NAMED, MEMORY)])
def test_a_named_field_gives_way_to_a_strong_leaning_only(share: float, first: str) -> None:
    query = replace(listen("JAX: out of memory"), leaning=_leaning(MEMORY, share))
    assert leads(_by_phrases(query)) == "referral other-framework"
    assert leads(order(query)) == first


def test_where_the_phrases_would_only_ask_any_leaning_decides() -> None:
    assert isinstance(order(_query()), Question)
    assert leads(order(replace(_query(), leaning=_leaning(PERFORMANCE, 0.05)))) == PERFORMANCE


@pytest.mark.parametrize("slugs", [("nan-loss",), ()])
def test_a_leaning_to_a_question_asks_and_one_to_a_referral_refers(slugs: tuple[str, ...]) -> None:
    query = _query(*slugs)
    assert isinstance(order(replace(query, leaning=_leaning("question"))), Question)
    route = order(replace(query, leaning=_leaning("referral theory")))
    assert route == Referral("theory", next(row.because for row in lexicon().referrals if row.refer_to == "theory"))


@pytest.mark.parametrize("specialist", read().specialists)
def test_a_room_of_which_nothing_was_heard_is_visited_for_its_own_reason(specialist: str) -> None:
    room = next(room for room in read().rooms if room.specialist == specialist)
    route = order(replace(_query(), leaning=_leaning(specialist)))
    assert isinstance(route, Plan)
    (step,) = route.steps
    assert (step.specialist, step.stage, step.because) == (specialist, Stage.DIAGNOSE, room.why)
    assert step.rule_out == tuple(fault.slug for fault in room.faults)
    assert (step.examine, step.read) == (GENERAL, specialist)
    assert all(COMMAND.fullmatch(command) for command in step.examine)


def test_a_room_of_which_something_was_heard_is_visited_for_that() -> None:
    query = _query("nan-loss", "training-slow")
    route = order(replace(query, leaning=_leaning(PERFORMANCE)))
    expected = order(_query("training-slow"))
    assert isinstance(route, Plan)
    assert isinstance(expected, Plan)
    assert route.steps[0] == expected.steps[0]


def test_a_symptom_whose_plan_begins_elsewhere_does_not_speak_for_its_room() -> None:
    query = _query("loss-scale-trouble")
    assert leads(_by_phrases(query)) == DEBUGGING
    route = order(replace(query, leaning=_leaning(PRECISION)))
    assert leads(route) == PRECISION
    assert isinstance(route, Plan)
    assert route.steps[0].examine == GENERAL


def test_the_words_add_whom_they_want_in_the_order_of_how_surely() -> None:
    query = _query("nan-loss")
    rooms = {"custom_autograd_functions": 0.7, "checkpointing_and_reproducibility": 0.9, "module_design_patterns": 0.2}
    assert _visits(order(replace(query, leaning=_leaning(DEBUGGING, **rooms)))) == [
        (DEBUGGING, "diagnose"),
        ("checkpointing-and-reproducibility", "diagnose"),
        ("custom-autograd-functions", "diagnose"),
    ]


def test_the_words_leave_out_whom_they_do_not_want_and_never_the_first() -> None:
    query = _query("nan-loss", "training-slow")
    assert set(_by_phrases(query).route) == {DEBUGGING, PERFORMANCE}  # type: ignore[union-attr]
    route = order(replace(query, leaning=_leaning(DEBUGGING, debugging_techniques=0.0, performance_profiling=0.0)))
    assert isinstance(route, Plan)
    assert route.route == (DEBUGGING,)


@pytest.mark.parametrize("share", [JOINS, LEAVES, (JOINS + LEAVES) / 2])
def test_who_is_neither_wanted_nor_unwanted_stays_as_the_phrases_left_it(share: float) -> None:
    rooms = {room.replace("-", "_"): max(share, LEAVES + 0.001) for room in read().specialists}
    for slugs in (("nan-loss",), ("nan-loss", "training-slow")):
        query = _query(*slugs)
        assert order(replace(query, leaning=_leaning(DEBUGGING, **rooms))) == _by_phrases(query)


@pytest.mark.parametrize(
    ("slug", "first", "added"),
    [("training-slow", PERFORMANCE, PRECISION), ("nan-loss", DEBUGGING, PRECISION)],
)
def test_a_cure_that_precedence_knows_joins_closed(slug: str, first: str, added: str) -> None:
    route = order(replace(_query(slug), leaning=_leaning(first, mixed_precision_and_optimization=0.9)))
    assert isinstance(route, Plan)
    step = next(step for step in route.steps if step.specialist == added)
    assert step.stage is Stage.TREAT
    assert step.opens_on
    assert step not in route.open(())


def test_whoever_else_joins_takes_the_stage_of_those_who_do_not_wait() -> None:
    rooms = {room.replace("-", "_"): 0.9 for room in read().specialists}
    for slug, symptom in lexicon().symptoms.items():
        plan = _by_phrases(_query(slug))
        assert isinstance(plan, Plan)
        route = order(replace(_query(slug), leaning=_leaning(plan.route[0], **rooms)))
        assert isinstance(route, Plan), symptom
        assert set(route.route) == set(read().specialists)
        assert route.route[0] == plan.route[0]


def test_every_referral_that_the_words_can_lean_to_is_known() -> None:
    found = weights()
    assert found is not None
    for to in found.to:
        assert leads(order(replace(_query("nan-loss"), leaning=_leaning(to)))) == to


@given(
    st.lists(st.sampled_from(sorted(read().symptoms)), unique=True, max_size=4),
    st.sampled_from(["question", "referral theory", *sorted(read().specialists)]),
    st.floats(0, 1),
    st.dictionaries(st.sampled_from([room.replace("-", "_") for room in read().specialists]), st.floats(0, 1)),
)
def test_any_leaning_makes_a_route_that_makes_sense(
    slugs: list[str], to: str, share: float, rooms: dict[str, float]
) -> None:
    query = replace(_query(*slugs), leaning=_leaning(to, share, **rooms))
    route = order(query)
    assert route == order(query)
    assert leads(route) in {to, leads(_by_phrases(query))}
