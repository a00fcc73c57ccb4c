"""torch.cat in a loop copies everything that was collected, in every turn."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode


class Copied(TorchDispatchMode):
    """Counts the rows that cat writes."""

    rows = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        if func is torch.ops.aten.cat.default:
            self.rows += len(made)
        return made


@pytest.mark.parametrize(("section", "rows"), [("Bad", 5050), ("Good", 100)])
def test_the_rows_that_are_copied(shown, section: str, rows: int) -> None:
    # Without inference_mode, under which tensors are made outside of the dispatcher's sight.
    embed = shown("grown-by-cat", section).embed.__wrapped__
    with torch.no_grad(), Copied() as copied:
        whole = embed(nn.Linear(4, 8), [torch.ones(1, 4)] * 100)
    assert (len(whole), copied.rows) == (100, rows)
