"""With Adam's betas in the wrong order the loss stays above what it comes to otherwise; close ones do no harm."""

from __future__ import annotations

from statistics import median


def test_the_loss_ends_higher_with_betas_in_the_wrong_order(shown) -> None:
    bad, good = shown("betas-swapped", "Bad"), shown("betas-swapped", "Good")
    for seed in range(3):
        swapped, usual = (median(each.train(seed=seed)[-100:]) for each in (bad, good))
        assert swapped > 1.4 * usual


def test_betas_that_lie_close_together_do_no_harm_in_either_order(shown) -> None:
    train = shown("betas-swapped", "Good").train
    for seed in range(3):
        close, usual = (median(train(betas, seed)[-100:]) for betas in ((0.95, 0.9), (0.9, 0.999)))
        assert close < 1.4 * usual
