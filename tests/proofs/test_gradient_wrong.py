"""What half a gradient does to a training, without an error."""

from __future__ import annotations

import torch


def loss_after(function: type[torch.autograd.Function], steps: int = 20) -> float:
    made = torch.Generator().manual_seed(0)
    x = torch.randn(64, 8, generator=made, dtype=torch.float64)
    target = x @ torch.randn(8, 3, generator=made, dtype=torch.float64)
    weight = torch.zeros(3, 8, dtype=torch.float64, requires_grad=True)
    for _ in range(steps):
        loss = (function.apply(x, weight) - target).pow(2).sum(1).mean()
        (grad,) = torch.autograd.grad(loss, weight)
        with torch.no_grad():
            weight -= 0.03 * grad
    return loss.item()


def test_half_of_the_gradient_still_learns_and_learns_less(shown) -> None:
    bad, good = (loss_after(shown("gradient-wrong", section).Linear) for section in ("Bad", "Good"))
    assert (round(bad, 1), round(good, 1)) == (10.1, 2.7)


def test_gradcheck_of_torch_agrees(shown) -> None:
    for section, right in (("Bad", False), ("Good", True)):
        module = shown("gradient-wrong", section)
        assert torch.autograd.gradcheck(module.Linear.apply, module.make_inputs(), raise_exception=False) is right
