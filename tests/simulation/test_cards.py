"""How a card is named."""

from __future__ import annotations

import json

import pytest

from torchtriage.simulation.cards import CARDS, Card, parse_card


@pytest.mark.parametrize(
    ("text", "memory", "count"),
    [
        ("24GiB", 24 * 2**30, 1),
        ("24 GB", 24 * 10**9, 1),
        ("1.5gib", 1536 * 2**20, 1),
        ("2x512MiB", 512 * 2**20, 2),
        ("H100", 80 * 10**9, 1),
        ("4 x a100-80gb", 80 * 10**9, 4),
    ],
)
def test_a_card_is_named_by_its_memory_or_its_name(text: str, memory: int, count: int) -> None:
    card = parse_card(text)
    assert (card.memory, card.count) == (memory, count)


@pytest.mark.parametrize(("text", "said"), [("G7", "neither a size"), ("0GiB", "neither"), ("17xT4", "1 to 16")])
def test_what_is_no_card_is_refused_with_those_that_are(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_card(text)


@pytest.mark.parametrize("card", [*CARDS.values(), parse_card("24GiB")], ids=lambda card: card.name)
def test_a_card_is_the_same_once_it_was_handed_to_the_job(card: Card) -> None:
    assert Card.from_row(json.loads(json.dumps(card.as_row()))) == card
