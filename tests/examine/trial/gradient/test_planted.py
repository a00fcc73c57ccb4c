"""A sample of the planted functions; `bench/trials.py --only gradcheck` goes through all of them."""

from __future__ import annotations

import gradients
import pytest

from torchtriage.catalog import page, walk

PLANTED = {each.id: each for each in gradients.planted()}
SAMPLE = [
    "elementwise.SquareHalf", "elementwise.Cosine", "elementwise.LearnableSwishOnce", "elementwise.MultiplySwapped",
    "elementwise.ReluAtZero", "elementwise.Absolute", "elementwise.Huber", "matrices.LinearGiven",
    "matrices.LinearFirstRow", "matrices.LinearTransposed", "matrices.LinearNoBias", "matrices.LinearMixedUp",
    "matrices.Maximum", "matrices.ComplexNotConjugated", "matrices.LayerNormReferred",
    "situations.ScaleInPlace", "situations.ScaleInPlaceMarked", "situations.EditsGradient", "situations.ReadsInputRaw",
    "situations.RemembersOnTheClass", "situations.TwoOutputs", "situations.SavesWhatItComputed", "situations.Dropout",
    "situations.ForwardMode", "situations.OwnVmap", "situations.HalfDecorated", "situations.RunningMean",
    "situations.InSingle", "situations.InSingleWrong", "by_design.Round", "by_design.RoundHalf",
    "by_design.ReverseReferred", "by_design.NoGradientForTarget",
]  # fmt: skip


@pytest.mark.parametrize("name", SAMPLE)
def test_a_mistake_is_found_and_what_is_right_is_left_in_peace(name: str) -> None:
    row = gradients.tried(PLANTED[name])
    assert row.is_right, gradients.told(row)
    for what in ("order", "input", "explains"):
        assert not row.function.is_wrong or getattr(row.function, what) is None or row.names(what), gradients.told(row)


@pytest.mark.parametrize(("section", "slugs"), [("Bad", {"gradient-wrong"}), ("Good", set())])
def test_the_page_of_a_wrong_gradient_is_found_where_it_is_bad(section: str, slugs: set[str]) -> None:
    shown = page.read(walk.pages()["gradient-wrong"]).snippet(section)
    row = gradients.tried(gradients.Function(section, shown, "ops:Linear"))
    assert {each.fault.slug for each in row.findings} - {"autocast-not-handled"} == slugs  # which is advice


@pytest.mark.parametrize("slug", ["dirty-not-marked", "grad-output-edited", "tensor-on-ctx"])
def test_pages_of_what_a_trial_sees_are_found_where_they_are_bad(slug: str) -> None:
    for section, wanted in (("Bad", {slug}), ("Good", set())):
        shown = page.read(walk.pages()[slug])
        name = next(
            line.split()[1].partition("(")[0] for line in shown.snippet(section).splitlines() if line[:6] == "class "
        )
        row = gradients.tried(gradients.Function(section, shown.snippet(section), f"ops:{name}"))
        assert {each.fault.slug for each in row.findings} - {"gradient-wrong"} == wanted


def test_what_is_not_made_for_autocast_is_told_as_advice_and_not_as_a_mistake() -> None:
    shown = page.read(walk.pages()["autocast-not-handled"]).snippet("Bad")
    row = gradients.tried(gradients.Function("autocast", shown, "ops:Project"))
    assert {each.fault.slug for each in row.findings} == {"autocast-not-handled"}
    assert [each.detector for each in row.trial.inconclusive] == ["gradcheck/autocast"]
