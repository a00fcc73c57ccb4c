"""Phrases are matched word by word, in one pass."""

from __future__ import annotations

import pytest

from torchtriage.routing.phrases import Hit, Vocabulary, compile_phrases, longest, match, spell
from torchtriage.routing.words import tokens

PLAIN = Vocabulary()
RICH = Vocabulary(
    light=frozenset({"the", "is", "very"}),
    spellings={"modle": "model"},
    classes={"slow": ("<slow>",), "sluggish": ("<slow>",)},
)


def heard(phrase: str, text: str, vocabulary: Vocabulary = RICH) -> list[str]:
    """The pieces of TEXT in which PHRASE is heard."""
    trie = compile_phrases([[phrase]], vocabulary)
    found = list(tokens(text))
    hits = match(spell(found, trie, vocabulary), trie)
    return [text[found[hit.words[0]][1] : found[hit.words[-1]][2]] for hit in hits]


@pytest.mark.parametrize(
    ("phrase", "text", "pieces"),
    [
        ("amp", "example, champion, amplifier", []),
        ("amp", "I use AMP.", ["AMP"]),
        ("nan loss", "NaN losses", ["NaN losses"]),
        ("nan loss", "nan. loss", []),
        ("loss nan", "the loss is very nan", ["loss is very nan"]),
        ("loss .. nan", "loss goes up and then nan", ["loss goes up and then nan"]),
        ("loss .. nan", "loss one two three four five nan", []),
        ("loss .. nan", "loss loss nan", ["loss nan"]),
        ("train|run slow", "runs slow, trains slow", ["runs slow", "trains slow"]),
        ("big? model", "a model, a big model", ["model", "big model", "model"]),
        ("# gpus", "8 gpus", ["8 gpus"]),
        ("# gpus", "1 gpus", []),
        ("<slow> model", "sluggish model", ["sluggish model"]),
        ("model", "my modle", ["modle"]),
        ("=fixed", "fix it", []),
        ("=fixed", "it is Fixed", ["Fixed"]),
        ("zero_grad", "optimizer.zero_grad()", ["zero_grad"]),
        ("the model", "model", ["model"]),
        ("显存", "显存不足", ["显存"]),
    ],
)
def test_a_phrase_is_heard_where_its_words_stand(phrase: str, text: str, pieces: list[str]) -> None:
    assert heard(phrase, text) == pieces


@pytest.mark.parametrize("phrase", ["", "the", ".. model", "model ..", "model? .. slow", "the?"])
def test_a_phrase_without_a_word_at_either_end_is_refused(phrase: str) -> None:
    with pytest.raises(ValueError, match="must begin and end with a word"):
        compile_phrases([[phrase]], RICH)


def test_a_class_that_nobody_defined_is_refused() -> None:
    with pytest.raises(ValueError, match="no class of words is called <fast>"):
        compile_phrases([["<fast> model"]], RICH)


def test_a_longer_phrase_swallows_the_words_it_has_understood() -> None:
    memory, network, other = Hit(0, (0,)), Hit(1, (0, 1)), Hit(0, (5,))
    assert longest([memory, network, other], [True, True]) == [network, other]


def test_a_meaning_that_takes_no_part_is_kept_inside_a_longer_one() -> None:
    frame, symptom = Hit(0, (0,)), Hit(1, (0, 1))
    assert longest([frame, symptom], [False, True]) == [frame, symptom]


def test_words_that_a_gap_has_skipped_are_not_swallowed() -> None:
    outer, between = Hit(0, (0, 3)), Hit(1, (1, 2))
    assert longest([outer, between], [True, True]) == [outer, between]


def test_two_meanings_of_the_same_words_are_both_kept() -> None:
    assert longest([Hit(0, (0,)), Hit(1, (0,)), Hit(1, (0,))], [True, True]) == [Hit(0, (0,)), Hit(1, (0,))]
