from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from torchtriage import triage
from torchtriage.catalog import load
from torchtriage.catalog.audit import audit
from torchtriage.examine.source.execution.trainings import Trainings

DETECTORS = {"source/clip-before-unscale", "run/clips", "run/compute-share"}


def test_a_sound_catalogue_has_nothing_to_report(house: Path) -> None:
    assert audit(load.read(house), DETECTORS) == ()


def test_a_sign_without_a_detector_is_reported(house: Path) -> None:
    assert audit(load.read(house), DETECTORS - {"run/clips"}) == (
        "clip-before-unscale: no detector is called run/clips",
    )


def test_a_detector_that_shows_nothing_is_reported(house: Path) -> None:
    (word,) = audit(load.read(house), DETECTORS | {"run/idle"})
    assert word == "run/idle: a detector that shows no fault and no verdict"


@pytest.mark.parametrize(
    ("name", "old", "new", "why"),
    [
        ("faults/clip-before-unscale.md", "loss-scale-trouble", "no-such", "explains the unknown symptom no-such"),
        (
            "faults/clip-before-unscale.md",
            "proof =",
            'refines = ["no-such"]\nproof =',
            "refines the unknown fault no-such",
        ),
        ("symptoms.toml", '["clip-before-unscale"]', '["no-such"]', "points to the unknown fault no-such"),
        ("verdicts.toml", 'unseen = "a profiler trace"\n', "", "verdict launch-bound: needs either signs or"),
        ("verdicts.toml", 'unseen = "a', 'signs = ["run/clips"]\nunseen = "a', "verdict launch-bound: needs either"),
    ],
)
def test_a_broken_link_is_reported(
    house: Path, changed: Callable[[str, str, str], Path], name: str, old: str, new: str, why: str
) -> None:
    changed(name, old, new)
    (word,) = audit(load.read(house), DETECTORS)
    assert why in word


def test_a_name_that_is_taken_twice_is_reported(house: Path) -> None:
    shutil.copytree(house / "mixed_precision", house / "module_design")
    assert audit(load.read(house), DETECTORS) == (
        "clip-before-unscale: the name is taken 2 times",
        "loss-scale-trouble: the name is taken 2 times",
    )


def test_the_catalogue_of_this_installation_keeps_all_its_promises() -> None:
    looks = [each for part in ("rules", "readings") for each in triage.detectors(part)]
    names = {each.name for each in looks}
    assert len({(each.name, each.looks_at is Trainings) for each in looks}) == len(looks)  # of a file, or of a program
    assert audit(load.catalog(), names) == ()
