"""The kernel that torch registers for autocast on CUDA refuses, and that of autocast on a CPU does not."""

from __future__ import annotations

import pytest
import torch
from torch._C import DispatchKey, DispatchKeySet

loss = torch.ops.aten.binary_cross_entropy.default
PARTS = torch.tensor([0.2, 0.9]), torch.tensor([0.0, 1.0])


def test_autocast_on_cuda_refuses() -> None:
    with pytest.raises(RuntimeError, match="unsafe to autocast"):
        loss.redispatch(DispatchKeySet(DispatchKey.AutocastCUDA), *PARTS)


def test_autocast_on_a_cpu_does_not(shown) -> None:
    expected = loss(*PARTS)
    assert torch.equal(loss.redispatch(DispatchKeySet(DispatchKey.AutocastCPU), *PARTS), expected)
    with torch.autocast("cpu"):
        assert torch.nn.BCELoss()(*PARTS) == expected
