"""Finite in half for near, far and zero embeddings, and what float64 gives."""

from typing import Any

import torch
from torch import nn


def exact(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    first, second = (nn.functional.normalize(each.double(), dim=-1) for each in (one, other))
    return nn.functional.cross_entropy(first @ second.T / 0.05, torch.arange(len(one)))


def check(program: Any) -> None:
    torch.manual_seed(0)
    base = torch.randn(12, 16)
    for kind, other in (("near", base + 0.05 * torch.randn(12, 16)), ("far", -base), ("mixed", torch.randn(12, 16))):
        for dtype in (torch.float16, torch.float32):
            one, two = base.clone().to(dtype).requires_grad_(), other.to(dtype)
            loss = program.contrastive(one, two)
            assert torch.isfinite(loss), f"{kind} embeddings in {dtype}: the loss is {loss.item()}"
            wanted = exact(one.detach(), two)
            assert abs(loss.item() - wanted) <= 0.03 * wanted + 0.01, f"{kind}: {loss.item():.4f}, exact {wanted:.4f}"
            loss.backward()
            assert one.grad is not None
            assert torch.isfinite(one.grad).all(), f"{kind} embeddings in {dtype}: the gradient is not finite"
            assert one.grad.abs().sum() > 0, f"{kind} embeddings in {dtype}: no gradient"
    empty = base.half()
    empty[3] = 0
    assert torch.isfinite(program.contrastive(empty, base.half())), "an embedding of zeros: the loss is not finite"
