"""A loop over the elements dispatches operations for each of them."""

from __future__ import annotations

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class Counted(TorchDispatchMode):
    count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += 1
        return func(*args, **(kwargs or {}))


def test_both_give_the_same_and_one_dispatches_for_each_element(shown) -> None:
    x, results, counts = torch.arange(64.0), [], []
    for section in ("Bad", "Good"):
        squares = shown("python-loop-over-tensor", section).squares
        with Counted() as counted:
            results.append(squares(x))
        counts.append(counted.count)
    assert torch.equal(*results)
    assert counts == [321, 2]
