from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from torchtriage.catalog import page
from torchtriage.core.errors import TriageError
from torchtriage.core.fault import EditSafety, Sign

CLIP = "faults/clip-before-unscale.md"


def test_a_page_gives_its_file_name_and_its_room_to_the_fault(house: Path) -> None:
    read = page.read(house / "mixed_precision" / CLIP)
    assert (read.fault.slug, read.fault.specialist) == ("clip-before-unscale", "mixed-precision")
    assert read.fault.signs == (Sign("source/clip-before-unscale"), Sign("run/clips", 0.3))
    assert [(r.order, r.id, r.edit) for r in read.fault.remedies] == [
        (1, "unscale-first", EditSafety.SAFE),
        (2, "clip-less", None),
    ]


def test_a_page_says_how_many_ranks_its_examples_need(house: Path, changed: Callable[[str, str, str], Path]) -> None:
    assert page.read(house / "mixed_precision" / CLIP).ranks == 1
    assert page.read(changed(CLIP, 'proof = "cpu"', 'proof = "cpu"\nranks = 2')).ranks == 2


def test_the_examples_of_a_page_can_be_taken_out(house: Path) -> None:
    read = page.read(house / "mixed_precision" / CLIP)
    assert (read.snippet("Bad"), read.snippet("Good")) == ("clip()\n", "unscale()\nclip()\n")
    with pytest.raises(TriageError, match="'Not this' has no Python block"):
        read.snippet("Not this")


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("+++\ntitle", "title", "not enough values"),
        ('title = "', 'title "', "Expected '='"),
        ('class = "wrong"', 'class = "bad"', "Invalid enum value 'bad'"),
        ('verify = "It does not."\n', "", "verify"),
        ('cost = "None."', 'cost = ""', "cost must be said"),
        ('"run/clips > 0.3"', '"run/clips < 0.3"', "write DETECTOR or DETECTOR > NUMBER"),
        ('signs = ["source/clip-before-unscale", "run/clips > 0.3"]', "signs = []", "signs"),
        ('persona = "default"', 'persona = "default"\nsevrity = "high"', r"unknown keys in the head: \['sevrity'\]"),
        ('proof = "cpu"', "ranks = 0", "`int` >= 1"),
        ("## Good", "## Better", "are not"),
        ("## Not this\n", "", "are not"),
    ],
)
def test_a_broken_page_is_named_with_what_is_wrong(
    changed: Callable[[str, str, str], Path], old: str, new: str, why: str
) -> None:
    path = changed(CLIP, old, new)
    with pytest.raises(TriageError, match=why) as error:
        page.read(path)
    assert error.value.where == str(path)
