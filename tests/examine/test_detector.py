from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from torchtriage.core.evidence import Evidence, Inconclusive, Observed, Place
from torchtriage.examine.detector import CannotSee, Sighting, detector, perform, view


@dataclass(frozen=True)
class Word:
    text: str


@dataclass(frozen=True)
class Sentence:
    text: str


@dataclass(frozen=True)
class Picture:
    pass


@view(Word, of=Sentence)
def words(sentence: Sentence) -> Iterable[Word]:
    if not sentence.text:
        raise CannotSee("the sentence is empty", "say something")
    return map(Word, sentence.text.split())


view(Picture, of=Picture)(lambda picture: (picture,))


@detector("text/shouting")
def shouting(word: Word) -> Iterator[Sighting]:
    """A word in capitals.

    More is said here.
    """
    if word.text.isupper():
        yield Sighting(Place(container=word.text))


@detector("text/long")
def long(word: Word) -> Iterator[Sighting]:
    """A long word."""
    if len(word.text) > 4:
        yield Sighting(Place(), f"{word.text} is long", value=float(len(word.text)), unit="letters", spread=(5.0, 9.0))


@detector("text/broken")
def broken(word: Word) -> Iterator[Sighting]:
    """Divides by zero."""
    yield Sighting(Place(), value=1 / (len(word.text) - len(word.text)))


@detector("picture/any")
def any_picture(picture: Picture) -> Iterator[Sighting]:
    """A picture."""
    yield Sighting(Place())


def test_a_detector_is_shown_every_part_that_its_annotation_names() -> None:
    (outcome,) = perform([shouting], Sentence("HELP my LOSS"))
    assert outcome == Observed(
        "text/shouting",
        tuple(Evidence("text/shouting", Place(container=word), "A word in capitals.") for word in ("HELP", "LOSS")),
    )


def test_a_sighting_keeps_its_own_words_and_measure() -> None:
    (outcome,) = perform([long], Sentence("diverged"))
    assert outcome == Observed(
        "text/long", (Evidence("text/long", Place(), "diverged is long", 8.0, "letters", (5.0, 9.0)),)
    )


def test_every_detector_that_fits_ends_in_one_outcome_and_the_others_are_not_asked() -> None:
    outcomes = list(perform([shouting, any_picture, long], Sentence("fine")))
    assert outcomes == [Observed("text/shouting"), Observed("text/long")]


def test_what_cannot_be_seen_is_said_with_what_would_unblock_it() -> None:
    assert list(perform([shouting, long], Sentence(""))) == [
        Inconclusive(name, "the sentence is empty", "say something") for name in ("text/shouting", "text/long")
    ]


def test_a_detector_that_fails_is_inconclusive_and_takes_nothing_from_the_others() -> None:
    failed, seen = perform([broken, shouting], Sentence("HELP"))
    assert isinstance(failed, Inconclusive)
    assert "ZeroDivisionError" in failed.why
    assert isinstance(seen, Observed)
    assert len(seen.evidence) == 1


def nameless(word: Word) -> Iterator[Sighting]:
    yield Sighting(Place())


def of_nothing(word: int) -> Iterator[Sighting]:
    """Looks at what nobody shows."""
    yield Sighting(Place())


def of_two(word: Word, picture: Picture) -> Iterator[Sighting]:
    """Looks at two things."""
    yield Sighting(Place())


@pytest.mark.parametrize(
    ("look", "why"),
    [(nameless, "docstring"), (of_nothing, "exactly one of"), (of_two, "exactly one of")],
)
def test_a_function_that_does_not_tell_what_it_does_is_no_detector(look: Any, why: str) -> None:
    with pytest.raises(TypeError, match=why):
        detector("text/none")(look)
