"""Everything that is heard has its place, and nothing that is said is taken for a fact."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchtriage.core.query import ClaimKind, PressureKind
from torchtriage.routing.listen import MOST, listen


@given(st.text())
def test_any_text_is_heard_without_an_error(text: str) -> None:
    assert listen(text).text == text


WORDS = [
    "loss",
    "NaN",
    "OOM",
    "slow",
    "GPU",
    "memory",
    "grows",
    "should",
    "I",
    "use",
    "AMP",
    "senior",
    "says",
    "fixed",
    "no",
    "not",
    "tried",
    "DDP",
    "8",
    "GPUs",
    ".",
    ",",
    "显存",
    "it",
    "1",
]


@given(st.lists(st.sampled_from(WORDS), max_size=60).map(" ".join))
def test_every_span_holds_its_text(text: str) -> None:
    query = listen(text)
    for span in (*query.symptoms, *query.claims, *query.pressures, *query.decoded):
        assert text[span.start : span.end] == span.text


def test_a_scenario_is_heard_with_its_spans(scenario: dict[str, Any]) -> None:
    query = listen(scenario["query"])
    assert all(query.text[each.start : each.end] == each.text for each in query.symptoms)


def test_what_is_heard_stands_in_the_order_of_the_text() -> None:
    query = listen("slow, then OOM, then NaN")
    assert [each.symptom for each in query.symptoms] == ["training-slow", "out-of-memory", "nan-loss"]


@pytest.mark.parametrize(
    "text",
    [
        "for example, an amplifier champion",
        "a memory network with long short-term memory",
        "my data are normally distributed",
        "an image restoration net",
        "half of the people agree",
    ],
)
def test_words_that_only_sound_like_a_symptom_are_not_heard(text: str) -> None:
    assert listen(text).symptoms == ()


@pytest.mark.parametrize(
    "text",
    [
        "no NaN so far",
        "without any NaN",
        "there is no OOM",
        "it is not an OOM",
        "the NaN is gone",
        "the NaN loss is fixed now",
        "we fixed the NaN",
        "the loss isn't NaN",
        "I don't have any NaN",
        "we do not get OOM",
        "the memory does not grow",
        "finally solved the OOM",
        "the OOM went away",
        "no OOM or NaN, nor hangs",
        "we don't use FSDP or DDP",
    ],
)
def test_what_is_denied_or_over_is_not_a_symptom(text: str) -> None:
    assert listen(text).symptoms == ()


@pytest.mark.parametrize(
    "text",
    [
        "fix the NaN",
        "the loss is not only NaN",
        "loss does not decrease",
        "no idea why there is an OOM",
        "can NaN be fixed",
        "no OOM. NaN or whatever it is",
        "no OOM, slow training",
    ],
)
def test_a_wish_or_a_lack_is_no_denial(text: str) -> None:
    assert len(listen(text).symptoms) == 1


@pytest.mark.parametrize(
    ("text", "kind", "claimed"),
    [
        ("slow, should I use mixed precision?", ClaimKind.PROPOSED_CURE, "mixed precision"),
        ("OOM; would gradient checkpointing help?", ClaimKind.PROPOSED_CURE, "gradient checkpointing"),
        ("NaN, I already tried AMP", ClaimKind.TRIED_FIX, "AMP"),
        ("slow and already profiled", ClaimKind.TRIED_FIX, "already profiled"),
        ("NaN. I blame the scheduler, really", ClaimKind.GUESSED_CAUSE, "I blame the scheduler"),
        ("my senior says use DDP, but it is slow", ClaimKind.AUTHORITY, "senior says use DDP"),
        ("my senior says AMP will fix the slow training", ClaimKind.AUTHORITY, "senior says AMP will fix"),
    ],
)
def test_a_claim_is_heard_with_what_it_holds(text: str, kind: ClaimKind, claimed: str) -> None:
    assert [(claim.kind, claim.text) for claim in listen(text).claims if claim.kind is kind] == [(kind, claimed)]


def test_every_claim_and_pressure_has_its_answer() -> None:
    query = listen(
        "urgent! my senior says use AMP, I already tried more GPUs, I think it is the loader, should I use bf16?"
    )
    assert {claim.kind for claim in query.claims} == set(ClaimKind)
    assert all(each.answer.endswith(".") for each in (*query.claims, *query.pressures))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("this is urgent, demo in 30 minutes", PressureKind.TIME),
        ("my tech lead insists on it", PressureKind.AUTHORITY),
        ("I already tried everything", PressureKind.SUNK_COST),
        ("I'm exhausted", PressureKind.EXHAUSTION),
        ("should I just use AMP?", PressureKind.SUGGESTION),
        ("I'm pretty sure it is right", PressureKind.CONFIDENCE),
        ("this is too complicated for me", PressureKind.COMPLEXITY),
        ("just a quick question", PressureKind.TRIVIALITY),
        ("it is a simple issue", PressureKind.TRIVIALITY),
        ("just give me a direct answer", PressureKind.HELPFULNESS),
    ],
)
def test_each_pressure_is_heard(text: str, kind: PressureKind) -> None:
    assert kind in {each.kind for each in listen(text).pressures}


def test_a_clause_ends_where_the_text_does() -> None:
    (claim,) = (each for each in listen("OOM. I suspect " + "a " * 100).claims if each.kind is ClaimKind.GUESSED_CAUSE)
    assert len(claim.text) <= 140


def test_a_thing_said_a_thousand_times_is_kept_a_few_times() -> None:
    query = listen("NaN loss. " * 1000)
    assert [each.symptom for each in query.symptoms] == ["nan-loss"] * MOST


def test_a_claim_inside_a_claim_of_its_kind_is_one_claim() -> None:
    query = listen("I think it is the loader, so it must be I/O")
    spans = [(each.start, each.end) for each in query.claims if each.kind is ClaimKind.GUESSED_CAUSE]
    assert len(spans) == len(set(spans))
    assert not any(a != b and a[0] <= b[0] and b[1] <= a[1] for a in spans for b in spans)


def test_a_claim_about_a_symptom_is_kept_however_many_came_before() -> None:
    query = listen("I guess so. " * 10 + "It must be NCCL.")
    assert query.claims[-1].text == "It must be NCCL"


def test_twenty_thousand_claims_and_cures_are_heard_as_the_first_ones_are() -> None:
    said = "slow, should I use AMP? how should I start? CUDA out of memory. "
    once, often = listen(said), listen(said * 20_000)
    assert {claim.text for claim in once.claims} == {claim.text for claim in often.claims}
    assert [each.start for each in often.symptoms if each.symptom == "training-slow"] == [
        n * len(said) for n in range(MOST)
    ]
