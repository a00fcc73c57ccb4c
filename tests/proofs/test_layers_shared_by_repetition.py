"""A multiplied list of layers has the weights of one."""

from __future__ import annotations

import pytest
import torch


@pytest.mark.parametrize(("section", "tensors"), [("Bad", 2), ("Good", 6)])
def test_a_multiplied_list_has_one_set_of_weights(shown, section: str, tensors: int) -> None:
    model = shown("layers-shared-by-repetition", section).Stack(4, 3)
    assert len(list(model.parameters())) == tensors
    assert len(model.state_dict()) == 6


def test_the_gradients_of_all_places_are_added_up(shown) -> None:
    torch.manual_seed(0)
    model = shown("layers-shared-by-repetition", "Bad").Stack(4, 3)
    model(torch.randn(2, 4)).sum().backward()
    assert model.layers[0].weight.grad is model.layers[2].weight.grad


def test_a_checkpoint_of_the_shared_model_loads_into_the_other(shown) -> None:
    shared = shown("layers-shared-by-repetition", "Bad").Stack(4, 3)
    apart = shown("layers-shared-by-repetition", "Good").Stack(4, 3)
    assert apart.load_state_dict(shared.state_dict()).missing_keys == []
