"""Who else sees the gradient that backward is given."""

from __future__ import annotations

import torch


def gradient(function: type[torch.autograd.Function]) -> list[float]:
    x = torch.tensor([-1.0, 2.0], requires_grad=True)
    (function.apply(x) + x).pow(2).sum().backward()
    assert x.grad is not None
    return x.grad.tolist()


def test_another_branch_gets_the_changed_gradient(shown) -> None:
    assert gradient(shown("grad-output-edited", "Bad").Rectify) == [0.0, 16.0]


def test_a_clone_is_nobody_elses(shown) -> None:
    assert gradient(shown("grad-output-edited", "Good").Rectify) == [-2.0, 16.0]
