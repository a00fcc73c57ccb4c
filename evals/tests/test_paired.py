"""The arithmetic of differences, simulated where only a simulation can tell."""

from __future__ import annotations

import numpy as np
import pytest

from torchtriage_evals.paired import FEWEST, difference, interval, student, wilson

SIMULATIONS, DRAWS = 2_000, 500


@pytest.mark.parametrize("families", [30, 40, 80])
def test_the_interval_covers_the_truth_as_often_as_it_says(families: int) -> None:
    rng = np.random.default_rng(families)
    covered = 0
    for number in range(SIMULATIONS):
        counts = rng.integers(1, 5, families).astype(float)
        spread = rng.normal(0, 0.2, families)  # of each family
        noise = rng.normal(0, 1, families) * 0.3 / np.sqrt(counts)  # of its scenarios
        found = interval(counts * (0.1 + spread + noise), counts, seed=number, draws=DRAWS)
        assert found is not None
        covered += found.low <= 0.1 <= found.high
    assert 0.92 <= covered / SIMULATIONS <= 0.98


def test_red_against_red_holds_nothing_as_often_as_it_says() -> None:
    rng, held = np.random.default_rng(7), 0
    for number in range(SIMULATIONS):
        able = rng.beta(1.2, 1.2, 60)  # of each scenario; two scenarios to a family
        gains = (rng.binomial(15, able) - rng.binomial(15, able)) / 15
        found = interval(gains.reshape(30, 2).sum(1), np.full(30, 2.0), seed=number, draws=DRAWS)
        assert found is not None
        held += found.low <= 0 <= found.high
    assert 0.92 <= held / SIMULATIONS <= 0.98


@pytest.mark.parametrize("effect", [0.1, 0.2, -0.15])
def test_a_known_effect_is_found(effect: float) -> None:
    rng = np.random.default_rng(3)
    able = rng.uniform(0.25, 0.7, 90)
    before = {f"s{n}": float(rng.binomial(15, p) / 15) for n, p in enumerate(able)}
    after = {f"s{n}": float(rng.binomial(15, p + effect) / 15) for n, p in enumerate(able)}
    found = difference(before, after, {name: f"f{int(name[1:]) // 2}" for name in before})
    assert found is not None
    assert found.interval is not None
    assert found.interval.low <= effect <= found.interval.high
    assert (found.interval.low > 0) == (effect > 0)
    assert (found.interval.high < 0) == (effect < 0)


@pytest.mark.parametrize(("scenarios", "effect", "least"), [(60, 0.1, 0.9), (90, 0.1, 0.95), (60, 0.05, 0.4)])
def test_what_a_run_of_three_epochs_can_find(scenarios: int, effect: float, least: float) -> None:
    rng, found = np.random.default_rng(11), 0
    for number in range(500):
        able = rng.beta(1.2, 1.2, scenarios)  # six points, three epochs; two scenarios to a family
        better = np.clip(able + effect + rng.normal(0, 0.1, scenarios), 0, 1)
        gains = (rng.binomial(18, better) - rng.binomial(18, able)) / 18
        seen = interval(gains.reshape(-1, 2).sum(1), np.full(scenarios // 2, 2.0), seed=number, draws=DRAWS)
        assert seen is not None
        found += seen.low > 0
    assert found / 500 >= least


def test_only_scenarios_that_both_arms_have_are_compared() -> None:
    found = difference({"a": 0.0, "b": 1.0, "c": 0.5}, {"b": 0.5, "c": 0.5, "d": 1.0}, dict.fromkeys("abcd", "f"))
    assert found is not None
    assert (found.scenarios, found.families, found.wins, found.losses) == (2, 1, 0, 1)
    assert found.worse == (("b", -0.5),)
    assert difference({"a": 1.0}, {"b": 1.0}, {"a": "f", "b": "f"}) is None


def test_a_family_of_many_wordings_weighs_no_more_than_its_scenarios_and_widens_the_interval() -> None:
    rng = np.random.default_rng(5)
    gains = {f"s{n}": float(gain) for n, gain in enumerate(np.repeat(rng.normal(0.1, 0.3, 12), 5))}
    zero = dict.fromkeys(gains, 0.0)
    alone = difference(zero, gains, {name: name for name in gains})
    together = difference(zero, gains, {name: str(int(name[1:]) // 5) for name in gains})
    assert alone is not None
    assert together is not None
    assert alone.mean == pytest.approx(together.mean)
    assert alone.interval is not None
    assert together.interval is not None
    assert together.interval.high - together.interval.low > 1.5 * (alone.interval.high - alone.interval.low)


def test_too_few_families_have_no_interval() -> None:
    ones = np.ones(FEWEST - 1)
    assert interval(ones, ones) is None


def test_the_same_scores_give_the_same_interval() -> None:
    sums, counts = np.random.default_rng(1).normal(size=20), np.ones(20)
    assert interval(sums, counts) == interval(sums, counts)


@pytest.mark.parametrize(("degrees", "table"), [(9, 2.262), (19, 2.093), (29, 2.045), (59, 2.001), (119, 1.980)])
def test_students_quantile_is_that_of_the_tables(degrees: int, table: float) -> None:
    assert student(degrees) == pytest.approx(table, abs=0.001)


def test_a_share_has_wilsons_interval() -> None:
    found = wilson(18, 20)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((0.699, 0.972), abs=0.001)
    assert wilson(0, 0) is None
    none = wilson(0, 5)
    assert none is not None
    assert (none.low, none.high) == pytest.approx((0.0, 0.434), abs=0.001)
