"""What was saved hollow loads without a complaint and computes something else."""

from __future__ import annotations

import torch


def test_the_model_that_was_loaded_gives_one_output_for_every_input(shown) -> None:
    model, again = shown("checkpoint-hollow", "Bad").train()
    x = torch.randn(8, 8)
    assert again(x).unique().numel() == 1 < model(x).unique().numel()


def test_saved_whole_it_computes_the_same(shown) -> None:
    model, again = shown("checkpoint-hollow", "Good").train()
    x = torch.randn(8, 8)
    assert torch.equal(again(x), model(x))
