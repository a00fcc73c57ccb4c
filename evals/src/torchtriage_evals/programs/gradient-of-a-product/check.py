"""Exact where nothing is clipped, clipped for the weight alone, for shapes that are not square, too."""

from typing import Any

import torch


def gradients(product: Any, x: torch.Tensor, weight: torch.Tensor, factor: float) -> tuple[torch.Tensor, ...]:
    return torch.autograd.grad((product(x, weight) * factor).sum(), (x, weight))


def check(program: Any) -> None:
    torch.manual_seed(0)
    for shape in ((4, 4, 4), (3, 5, 2)):
        rows, inner, outer = shape
        x = torch.randn(rows, inner, dtype=torch.float64, requires_grad=True)
        weight = torch.randn(inner, outer, dtype=torch.float64, requires_grad=True)
        assert torch.equal(program.bounded(x, weight), x @ weight), "another product"
        small = gradients(program.bounded, x, weight, 1e-3), gradients(torch.matmul, x, weight, 1e-3)
        assert all(map(torch.allclose, *small)), f"shape {shape}: wrong where nothing is clipped"
        (for_x, for_weight), (right, free) = (
            gradients(product, x, weight, 50.0) for product in (program.bounded, torch.matmul)
        )
        assert torch.allclose(for_weight, free.clamp(-1, 1)), f"shape {shape}: the weight's gradient is not clipped"
        assert torch.allclose(for_x, right), f"shape {shape}: the input's gradient is clipped"
