"""No copy is made, gradients are right before and behind it, and the gradient that comes in is left alone."""

from typing import Any

import torch


def check(program: Any) -> None:
    torch.manual_seed(0)
    x = torch.tensor([-1.0, 2.0, -3.0, 4.0], requires_grad=True)
    before = x * 3
    place = before.data_ptr()
    after = program.rectify(before)
    assert after.data_ptr() == place, "the result has memory of its own"
    (before * torch.tensor([1.0, 10.0, 100.0, 1000.0])).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0.0, 30.0, 0.0, 3000.0], f"behind the rectifier the gradient is {x.grad.tolist()}"
    given = torch.randn(6)
    kept = given.clone()
    y = torch.randn(6, requires_grad=True)
    program.rectify(y + 0).backward(given)
    assert torch.equal(given, kept), "the gradient that came in was written to"
    y = torch.randn(6, requires_grad=True)
    shared = y + 0
    squares = shared * shared
    program.rectify(shared)
    try:
        squares.sum().backward()
    except RuntimeError:
        pass
    else:
        raise AssertionError("autograd does not know that a value that it saved was changed")
