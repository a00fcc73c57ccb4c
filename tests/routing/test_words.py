"""Words are heard without case, accents and inflection, and keep their places."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchtriage.routing.words import NUMBER, PAUSE, fold, stem, tokens


@given(st.text())
def test_every_token_stands_where_it_says(text: str) -> None:
    places = [(start, end) for _, start, end in tokens(text)]
    assert all(0 <= start < end <= len(text) for start, end in places)
    assert places == sorted(places)
    assert all(first[1] <= second[0] for first, second in pairwise(places))


@pytest.mark.parametrize(
    ("text", "forms"),
    [
        ("NaN loss", ["nan", "loss"]),
        ("zero_grad()", ["zero", "grad"]),
        ("doesn't", ["doesnt"]),
        ("isn’t", ["isnt"]),
        ("8xH100", [NUMBER, "x", "h100"]),
        ("1 GPU, 4 GPUs", ["1", "gpu", NUMBER, "gpus"]),
        ("eight GPUs", [NUMBER, "gpus"]),
        ("30 %", [NUMBER, "%"]),
        ("mat1 and mat2", ["mat1", "and", "mat2"]),
        ("Slow. Training", ["slow", PAUSE, "training"]),
        ("oom -> nan", ["oom", PAUSE, "nan"]),
        ("显存不足OOM了", ["显", "存", "不", "足", "oom", "了"]),
        ("不gpu", ["不", "gpu"]),
        ("función ＡＭＰ", ["funcion", "amp"]),
    ],
)
def test_a_text_is_taken_apart_into_folded_words(text: str, forms: list[str]) -> None:
    assert [form for form, *_ in tokens(text)] == forms


@pytest.mark.parametrize(
    ("word", "root"),
    [
        ("training", "train"),
        ("trained", "train"),
        ("losses", "loss"),
        ("loss", "loss"),
        ("running", "run"),
        ("saved", "sav"),
        ("save", "sav"),
        ("batches", "batch"),
        ("epochs", "epoch"),
        ("copies", "copy"),
        ("speed", "speed"),
        ("this", "this"),
        ("gpus", "gpus"),
        ("string", "string"),
        ("falling", "fall"),
        ("oom", "oom"),
        ("显", "显"),
    ],
)
def test_inflected_forms_share_a_root(word: str, root: str) -> None:
    assert stem(word) == root


def test_case_and_accents_make_no_difference() -> None:
    assert fold("GRÖSSE") == fold("größe".upper()) == "grosse"
