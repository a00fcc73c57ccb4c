"""A graph is freed by the first backward, and grows where it is retained."""

from __future__ import annotations

import pytest
import torch


def test_a_tensor_of_before_the_loop_is_propagated_once(shown) -> None:
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        shown("backward-twice", "Bad").train()
    shown("backward-twice", "Bad").train(steps=1)


def test_a_forward_in_each_step_trains(shown) -> None:
    shown("backward-twice", "Good").train()


def test_operations_that_keep_nothing_can_be_gone_through_twice() -> None:
    weight = torch.ones(2, requires_grad=True)
    total = weight + weight
    total.sum().backward()
    total.sum().backward()
    assert weight.grad is not None
    assert weight.grad.tolist() == [4.0, 4.0]
