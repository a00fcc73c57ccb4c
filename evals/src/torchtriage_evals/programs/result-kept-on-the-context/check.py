"""A result that nobody needs any more is freed at once, with or without a backward; gradients of both orders are right."""

import gc
from typing import Any
from weakref import ref

import torch


def kept(program: Any, backward: bool) -> bool:
    x = torch.randn(4, requires_grad=True)
    result = program.exponential(x)
    if backward:
        result.sum().backward()
    seen = ref(result)
    gc.disable()
    del result
    return seen() is not None


def check(program: Any) -> None:
    torch.manual_seed(0)
    assert not kept(program, True), "after its backward the result waits for the garbage collector"
    assert not kept(program, False), "where no backward ran the result waits for the garbage collector"
    x = torch.randn(4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(program.exponential, x, raise_exception=False), "gradcheck fails"
    assert torch.autograd.gradgradcheck(program.exponential, x, raise_exception=False), "the second order is wrong"
    result = program.exponential(x)
    with torch.no_grad():
        result.mul_(2)
    try:
        result.sum().backward()
    except RuntimeError:
        pass
    else:
        raise AssertionError("a result that was changed before the backward is not noticed")
