"""Ids and labels beyond the table raise on a CPU."""

from __future__ import annotations

import pytest
import torch
from torch import nn


def test_an_id_that_is_one_too_large_ends_the_run_in_the_batch_in_which_it_comes(shown) -> None:
    with pytest.raises(IndexError, match="index out of range in self"):
        shown("index-out-of-range", "Bad").train()
    shown("index-out-of-range", "Bad").train(steps=10)


def test_a_table_with_a_row_for_every_id_trains(shown) -> None:
    shown("index-out-of-range", "Good").train()


@pytest.mark.parametrize(("label", "raises"), [(3, True), (-1, True), (-100, False)])
def test_a_label_beyond_the_classes_raises_unless_it_is_left_out(label: int, raises: bool) -> None:
    logits, target = torch.zeros(2, 3), torch.tensor([0, label])
    if raises:
        with pytest.raises(IndexError, match="is out of bounds"):
            nn.functional.cross_entropy(logits, target)
    else:
        assert torch.isfinite(nn.functional.cross_entropy(logits, target))


def test_a_negative_id_is_none_of_an_embedding() -> None:
    with pytest.raises(IndexError):
        nn.Embedding(4, 2)(torch.tensor([-1]))
