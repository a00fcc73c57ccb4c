"""The peak has no factor d any more, and the answers are the same."""

from typing import Any

import torch

from torchtriage_evals.programs.seen import Operations


def check(program: Any) -> None:
    torch.manual_seed(0)
    queries, points = torch.randn(1024, 32), torch.randn(64, 32)
    with Operations() as seen:
        index, value = program.nearest(queries, points)
    assert seen.largest <= 2 * 1024 * 64, f"the largest tensor has {seen.largest} elements, n times m are {1024 * 64}"
    exact = torch.cdist(queries.double(), points.double()) ** 2
    assert torch.equal(index, exact.argmin(1)), "other neighbours"
    assert torch.allclose(value.double(), exact.min(1).values, rtol=1e-3, atol=1e-3), "other distances"
    queries.requires_grad_()
    program.nearest(queries, points)[1].sum().backward()
    assert queries.grad is not None, "distances have no gradient"
    wanted = 2 * (queries.detach() - points[exact.argmin(1)])
    assert torch.allclose(queries.grad, wanted, rtol=1e-3, atol=1e-3), "another gradient"
