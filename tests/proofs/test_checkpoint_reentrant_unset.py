"""Without use_reentrant torch warns, and the first block of a network does not train."""

from __future__ import annotations

import pytest
import torch


def test_the_old_way_gives_the_first_block_no_gradient(shown) -> None:
    model = shown("checkpoint-reentrant-unset", "Bad").Network()
    with pytest.warns(UserWarning) as warned:  # noqa: PT030 - two texts, both looked at below
        model(torch.ones(2, 4)).sum().backward()
    texts = " ".join(str(each.message) for each in warned)
    assert "the use_reentrant parameter should be passed explicitly" in texts
    assert "None of the inputs have requires_grad=True" in texts
    assert model.first.weight.grad is None
    assert model.last.weight.grad is not None


def test_the_new_way_gives_one_without_a_warning(shown) -> None:
    model = shown("checkpoint-reentrant-unset", "Good").Network()
    model(torch.ones(2, 4)).sum().backward()
    assert model.first.weight.grad is not None
