"""What was spelled before is remembered, within bounds, and never changes what is heard."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchtriage.routing import phrases
from torchtriage.routing.compiled import lexicon
from torchtriage.routing.phrases import Spelling, spell
from torchtriage.routing.words import tokens

TEXTS = ["the loss is NaN", "CUDA out of memory.", "zebra giraffe", "显存 不足", ""]


def spelled(text: str, known: dict[str, Spelling] | None = None) -> list[Spelling]:
    return spell([*tokens(text)], lexicon().trie, lexicon().vocabulary, known)


@given(st.lists(st.sampled_from(TEXTS) | st.text(max_size=20), max_size=6))
def test_a_memory_of_words_does_not_change_how_they_are_spelled(texts: list[str]) -> None:
    known: dict[str, Spelling] = {}
    for text in texts:
        assert spelled(text, known) == spelled(text)


def test_a_memory_of_words_does_not_grow_without_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phrases, "MEMORY", 3)
    known: dict[str, Spelling] = {}
    for text in TEXTS * 3:
        assert spelled(text, known) == spelled(text)
    assert len(known) <= 3 + max(len([*tokens(text)]) for text in TEXTS)
