"""Draft answers are stopped where they give half an answer or an excuse."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchtriage.core.query import PressureKind
from torchtriage.routing.draft import review

RED = {
    "Just reduce your batch size to 8.": ("suggests-smaller-batch", "tensor-operations-and-memory"),
    "model = DistributedDataParallel(model)": ("shows-basic-ddp", "distributed-training-strategies"),
    "Enable mixed precision and increase num_workers.": ("guesses-optimisations", "performance-profiling"),
    "Lower the learning rate, or add gradient clipping.": ("lists-nan-fixes", "debugging-techniques"),
    "torch.save(model.state_dict(), 'm.pt')": ("shows-torch-save", "checkpointing-and-reproducibility"),
}
EXCUSES = {
    "Given the deadline, here it is.": PressureKind.TIME,
    "Since you already tried that, skip it.": PressureKind.SUNK_COST,
    "Your senior is right.": PressureKind.AUTHORITY,
    "You must be exhausted.": PressureKind.EXHAUSTION,
    "As you suggested, do it.": PressureKind.SUGGESTION,
    "This is too complex to say.": PressureKind.COMPLEXITY,
    "The code looks mostly correct!": PressureKind.CONFIDENCE,
    "Quick answer: yes.": PressureKind.TRIVIALITY,
    "It is an easy fix.": PressureKind.TRIVIALITY,
    "Here are some tips.": PressureKind.HELPFULNESS,
}


@pytest.mark.parametrize("draft", RED)
def test_a_red_flag_names_the_specialist_and_the_passage(draft: str) -> None:
    flags = [flag for flag in review(draft) if flag.specialist]
    assert {(flag.name, flag.specialist) for flag in flags} == {RED[draft]}
    assert all(draft[flag.start : flag.end] == flag.text and flag.sentence for flag in flags)


@pytest.mark.parametrize("draft", EXCUSES)
def test_an_excuse_is_heard_and_answered(draft: str) -> None:
    assert EXCUSES[draft].value in {flag.name for flag in review(draft) if flag.specialist is None}


def test_every_red_flag_and_every_pressure_has_its_case() -> None:
    assert len(RED) == 5
    assert set(EXCUSES.values()) == set(PressureKind)


@pytest.mark.parametrize("draft", ["Just use fp16.", "You could use AMP.", "Simply turn on autocast.", "Enable bf16."])
def test_a_format_recommended_without_a_measurement_is_a_guess(draft: str) -> None:
    assert {flag.name for flag in review(draft)} >= {"guesses-optimisations"}


def test_a_hurried_answer_is_stopped_for_its_guess_and_for_each_excuse() -> None:
    flags = review("Simply turn on AMP, no need to measure, it is urgent.")
    assert {flag.name for flag in flags} == {"guesses-optimisations", "triviality", "time"}


@pytest.mark.parametrize(
    "draft",
    [
        "Ask performance-profiling first; do not use fp16 before that.",
        "I know that it is urgent: run the first command, it takes a minute.",
        "Nothing can be said without profiling.",
        "Whether to use AMP is decided by what bounds the step.",
        "Run `torchtriage run --symptom out-of-memory -- train.py` and read where memory grows.",
        "For example, the amplifier is out of scope.",
        "Which of the three do you see?",
        "Save model, optimizer, scheduler, scaler and rng state with the epoch: torch.save(state, path).",
        "Launch by torchrun, take LOCAL_RANK, use DistributedSampler with set_epoch, then DistributedDataParallel(model).",
        "",
    ],
)
def test_a_whole_answer_and_a_diagnosis_are_left_alone(draft: str) -> None:
    assert review(draft) == ()


def test_passages_of_one_flag_do_not_overlap() -> None:
    flags = [flag for flag in review("torch.save(model.state_dict()) and torch.load(path)") if flag.specialist]
    assert [flag.text for flag in flags] == ["torch.save", "torch.load"]


@given(st.text())
def test_any_draft_can_be_read(draft: str) -> None:
    assert all(draft[flag.start : flag.end] == flag.text for flag in review(draft))
