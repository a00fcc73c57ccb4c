"""Losses and weights stay finite with equal pairs, the loss falls, and other pairs' gradients are exact."""

from typing import Any

import torch


def check(program: Any) -> None:
    torch.manual_seed(0)
    one, other = torch.randn(8, 6), torch.randn(8, 6)
    other[2] = one[2]
    model = program.make_model()
    losses = program.train(model, one, other)
    assert all(map(torch.isfinite, map(torch.tensor, losses))), f"losses {[round(x, 3) for x in losses[:4]]}"
    assert all(torch.isfinite(each).all() for each in model.parameters()), "weights that are not finite"
    assert losses[-1] < losses[0], "the loss does not fall"
    model = program.make_model().double()
    apart, away = one[3:].double(), other[3:].double()
    program.pull(model, apart, away).backward()
    wanted = torch.autograd.grad((model(apart) - model(away)).norm(dim=1).mean(), model.weight)[0]
    assert torch.allclose(model.weight.grad, wanted, rtol=1e-3), "another gradient for pairs that are apart"
    value = program.pull(model, one.double(), other.double())
    right = (model(one.double()) - model(other.double())).norm(dim=1).mean()
    assert torch.allclose(value, right, rtol=1e-3), f"a mean distance of {value:.4f}, right is {right:.4f}"
