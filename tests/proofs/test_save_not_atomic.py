"""A save that breaks off takes the old checkpoint with it, unless it was written beside it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn


class Killed(BaseException):
    pass


class Interrupts:
    """Ends the job in the middle of the saving."""

    def __reduce__(self):
        raise Killed


class Model(nn.Linear):
    saved = 0

    def state_dict(self, *args, **kwargs):
        state = super().state_dict(*args, **kwargs)
        self.saved += 1
        return state if self.saved < 2 else {**state, "more": Interrupts()}


@pytest.mark.parametrize(("section", "kept"), [("Bad", False), ("Good", True)])
def test_what_is_left_after_a_job_that_was_killed_while_it_saved(
    shown, section: str, kept: bool, tmp_path: Path
) -> None:
    path = tmp_path / "last.pt"
    with pytest.raises(Killed):
        shown("save-not-atomic", section).train(Model(3, 1), [(torch.ones(2, 3), torch.ones(2, 1))], 5, str(path))
    if kept:
        assert torch.load(path)["epoch"] == 0
    else:
        with pytest.raises((RuntimeError, EOFError)):
            torch.load(path)
