"""Where autocast is kept out, it changes nothing at all."""

from __future__ import annotations

import torch


def test_losses_equal_those_without_autocast_to_the_last_bit(shown) -> None:
    train = shown("autocast-without-effect", "Bad").train
    assert train(10) == train(10, autocast=False)


def test_where_it_is_let_in_they_do_not(shown) -> None:
    train = shown("autocast-without-effect", "Good").train
    assert train(10) != train(10, autocast=False)


def test_a_layer_within_a_region_that_is_switched_off_gives_float32() -> None:
    layers = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 8))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = layers(torch.randn(2, 8)).dtype
        with torch.autocast("cpu", enabled=False):
            kept_out = layers(torch.randn(2, 8)).dtype
    assert (inside, kept_out) == (torch.bfloat16, torch.float32)
