"""What an attribute of ctx keeps alive, and which changes it does not notice."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch


def is_kept(function: type[torch.autograd.Function]) -> bool:
    """Whether the output outlives its last name, until the garbage collector comes."""
    gc.collect()
    gc.disable()
    try:
        x = torch.ones(1000, requires_grad=True)
        y = function.apply(x)
        output = weakref.ref(y)
        y.sum().backward()
        del x, y
        kept = output() is not None
    finally:
        gc.enable()
    gc.collect()
    assert output() is None
    return kept


def test_an_output_on_ctx_waits_for_the_garbage_collector(shown) -> None:
    assert is_kept(shown("tensor-on-ctx", "Bad").Exponential)


def test_a_saved_output_goes_at_once(shown) -> None:
    assert not is_kept(shown("tensor-on-ctx", "Good").Exponential)


class OnCtx(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.x = x
        return torch.exp(x)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * torch.exp(ctx.x)


class Saved(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.exp(x)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * torch.exp(ctx.saved_tensors[0])


def changed(function: type[torch.autograd.Function]) -> float:
    x = torch.zeros(1, requires_grad=True)
    y = x * 1
    out = function.apply(y)
    with torch.no_grad():
        y.add_(1)
    out.sum().backward()
    assert x.grad is not None
    return x.grad.item()


def test_a_change_in_place_of_an_input_on_ctx_is_not_noticed() -> None:
    assert changed(OnCtx) == pytest.approx(2.718, abs=1e-3)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        changed(Saved)


@pytest.mark.parametrize(("function", "stays"), [(OnCtx, True), (Saved, False)])
def test_an_input_on_ctx_stays_as_long_as_the_loss(function, stays: bool) -> None:
    y = torch.ones(2, requires_grad=True) * 2
    given = weakref.ref(y)
    loss = function.apply(y).sum()
    del y
    loss.backward()
    assert (given() is not None) is stays
