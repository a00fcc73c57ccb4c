"""A tensor that is made on the host and moved costs a copy; one that is made on its device does not."""

from __future__ import annotations

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode


class Seen(TorchDispatchMode):
    """The names of the operations that make or copy a tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(func._schema.name)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    ("section", "operations"), [("Bad", ["aten::zeros", "aten::_to_copy"]), ("Good", ["aten::zeros"])]
)
def test_what_it_takes_to_make_the_state(shown, section: str, operations: list[str]) -> None:
    model = shown("created-then-moved", section).Recurrent(4, "meta")
    with Seen() as seen:
        out = model(torch.ones(2, 4, device="meta"))
    assert out.device.type == "meta"
    assert [name for name in seen.names if name in ("aten::zeros", "aten::_to_copy")] == operations
