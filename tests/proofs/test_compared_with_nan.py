"""NaN equals nothing, so a comparison never finds it."""

from __future__ import annotations

import pytest
import torch


@pytest.mark.parametrize(("section", "found"), [("Bad", False), ("Good", True)])
def test_only_isnan_finds_a_broken_loss(shown, section: str, found: bool) -> None:
    is_broken = shown("compared-with-nan", section).is_broken
    assert is_broken(torch.tensor(float("nan"))) is found
    assert not is_broken(torch.tensor(1.0))


def test_the_same_holds_for_every_element_of_a_tensor() -> None:
    x = torch.tensor([1.0, torch.nan])
    assert (x == torch.nan).tolist() == [False, False]
    assert (x != torch.nan).tolist() == [True, True]
    assert torch.ne(x, x).tolist() == torch.isnan(x).tolist() == [False, True]
