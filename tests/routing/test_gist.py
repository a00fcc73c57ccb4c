"""The gist holds the words that say what happens: not the claims, pressures and courtesies beside them."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchtriage.routing.compiled import lexicon
from torchtriage.routing.gist import FEW, MOST, SHORT, Gist, gist
from torchtriage.routing.listen import attend


def of(text: str) -> Gist:
    return gist(attend(text))


QUERIES = [
    "Training is slow on my A100.",
    "The loss becomes NaN after 200 steps.",
    "CUDA out of memory in the second epoch, with a batch of 8.",
    "GPU utilization stays at 20 percent.",
    "How do I save and load a checkpoint with the optimizer?",
    "RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x5 and 7x3)",
    "How should I write a backward for my own operation?",
]
BESIDE = [
    "It is urgent.",
    "The deadline is tonight.",
    "My boss insists.",
    "Nothing works.",
    "I have tried everything.",
    "I'm exhausted.",
    "I'm pretty sure.",
    "Just a quick question.",
    "I think it is the scheduler.",
    "I blame the weather.",
    "It must be NCCL.",
    "I already tried a smaller batch.",
    "Hello everybody!",
    "Thank you so much.",
    "Thanks in advance.",
]


@given(st.sampled_from(QUERIES), st.lists(st.sampled_from(BESIDE), min_size=1, max_size=4), st.booleans())
def test_what_is_said_beside_the_matter_adds_no_word(query: str, sayings: list[str], before: bool) -> None:
    text = "\n".join([*sayings, query] if before else [query, *sayings])
    alone, beside = of(query), of(text)
    assert set(beside.words) == set(alone.words)
    assert (set(beside.pairs), beside.topics) == (set(alone.pairs), alone.topics)


@pytest.mark.parametrize("text", ["I think it is the scheduler.", "Just a quick question, please.", "It is urgent!"])
def test_where_nothing_else_was_said_it_is_the_gist(text: str) -> None:
    assert of(text).words


@pytest.mark.parametrize("text", ["", "...", "?!"])
def test_a_text_without_words_has_no_words(text: str) -> None:
    assert (of(text).words, of(text).pairs, of(text).topics) == ((), (), ())


def test_a_symptom_in_the_clause_of_a_pressure_is_kept() -> None:
    assert {"nan", "loss"} <= set(of("urgent loss is NaN. Training runs on.").words)


def test_of_a_long_clause_only_the_saying_itself_is_left_out() -> None:
    clause = "it is urgent because the optimizer of our model forgets its momentum whenever the scheduler restarts"
    assert len(clause) > SHORT
    words = set(of(f"Look at this. {clause}").words)
    assert "urgent" not in words
    assert {"optimizer", "momentum", "scheduler"} <= words


def test_a_saying_between_commas_takes_its_clause_with_it() -> None:
    words = set(of("The kernel fails, it is really urgent for all, and the tensor is empty").words)
    assert {"kernel", "tensor"} <= words
    assert not {"urgent", "really"} & words


def test_each_word_is_there_once_in_the_order_of_the_text() -> None:
    assert of("slow kernel, slow loader, slow kernel").words == ("slow", "kernel", "loader")


def test_pairs_are_stems_and_do_not_cross_a_sentence() -> None:
    pairs = of("Kernels failed. Loaders waited.").pairs
    assert pairs == ("kernel fail", "loader wait")


def test_light_words_stand_in_no_pair() -> None:
    light = sorted(lexicon().vocabulary.light)
    pairs = of("the kernel of the loader is a tensor").pairs
    assert "kernel loader" in pairs
    assert not {word for pair in pairs for word in pair.split()} & set(light) & {"the", "of", "is", "a"}


def test_a_misspelt_word_is_the_word() -> None:
    assert of("my modle").words == of("my model").words


def test_topics_meet_where_they_are_few() -> None:
    topics = of("jax onnx install").topics
    single = [topic for topic in topics if " " not in topic]
    assert {"framework", "serving", "installing"} <= set(single)
    assert topics == (*single, *(f"{one} {other}" for one, other in combinations(single, 2)))


def test_many_topics_do_not_meet() -> None:
    topics = of(" ".join(word for word in lexicon().topics if word.isascii() and word.isalpha())[:4000]).topics
    assert len(topics) > FEW
    assert not any(" " in topic for topic in topics)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("the loss is NaN", "seen nan-loss"),
        ("the loss is NaN", "room debugging-techniques"),
        ("the loss is NaN", "phrases debugging-techniques"),
        ("Should I use mixed precision?", "said mixed-precision-use"),
        ("RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x5 and 7x3)", "message matmul-shapes"),
        ("JAX: what now", "phrases referral other-framework"),
        ("", "phrases question"),
    ],
)
def test_what_the_lexicon_made_of_it_is_in_the_gist(text: str, name: str) -> None:
    assert name in of(text).heard


def test_what_was_only_proposed_is_not_seen() -> None:
    assert "seen mixed-precision-use" not in of("Should I use mixed precision?").heard
    assert "said mixed-precision-use" not in of("The loss is NaN. Should I use mixed precision?").heard


@pytest.mark.parametrize(
    ("text", "layer"),
    [
        ("Fix my PyTorch training.", "question"),
        ("JAX: what now", "referral"),
        ("We moved from JAX to PyTorch.", "unless"),
    ],
)
def test_a_question_a_referral_and_what_makes_it_ours_again_are_heard_by_their_rows(text: str, layer: str) -> None:
    rows = [name.split()[1] for name in of(text).heard if name.startswith(f"{layer} ")]
    assert rows
    assert all(row.isdecimal() for row in rows)


def test_the_frames_of_a_traceback_and_settings_are_not_in_the_gist_and_code_is() -> None:
    text = (
        'It stops.\n  File "/home/zebra.py", line 3, in giraffe\n    camel()\nepochs: 3\nstrategy: llama\nseed: 1\n'
        "ostrich = pelican(heron)\nWhat now?\n"
    )
    words = set(of(text).words)
    assert not {"zebra", "giraffe", "camel", "llama"} & words
    assert {"ostrich", "pelican", "heron", "stops"} <= words


def test_a_long_text_has_a_gist_of_bounded_length() -> None:
    words = ["".join(chr(97 + at // 26**place % 26) for place in range(4)) for at in range(3 * MOST)]
    assert len(of(" ".join(words)).words) <= MOST


def test_the_order_of_sentences_on_their_own_lines_does_not_change_the_gist(reordered: tuple[str, str]) -> None:
    first, other = map(of, reordered)
    assert set(first.words) == set(other.words)
    assert set(first.pairs) == set(other.pairs)
    assert (first.topics, set(first.heard)) == (other.topics, set(other.heard))


@pytest.mark.parametrize("query", QUERIES)
def test_case_does_not_change_the_gist(query: str) -> None:
    assert of(query.upper()) == of(query) == of(query.lower())


@given(st.text())
def test_any_text_has_a_gist(text: str) -> None:
    told = of(text)
    assert told.heard
    assert len(set(told.words)) == len(told.words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("We don't use FSDP or DDP. CUDA out of memory.", {"we", "cuda", "out", "of", "memory"}),
        ("It isn't a memory leak. The loss plateaus", {"it", "the", "loss", "plateaus"}),
        ("the NaN is gone, accuracy is low", {"the", "accuracy", "is", "low"}),
    ],
)
def test_what_is_denied_or_over_adds_no_word(text: str, words: set[str]) -> None:
    assert set(of(text).words) == words


def test_what_is_denied_is_heard_as_denied() -> None:
    assert "denied nan-loss" in of("no NaN, but it is slow").heard


def test_where_nothing_but_a_denial_was_said_there_is_no_gist() -> None:
    assert of("no NaN").words == ()
