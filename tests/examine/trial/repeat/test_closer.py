"""The second look takes itself off, and nothing of the job's."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode

from torchtriage.examine.trial.repeat.job._closer import Closer


class Counting(TorchDispatchMode):  # type: ignore[misc]  # torch's types are not followed
    seen = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen += 1
        return func(*args, **(kwargs or {}))


@pytest.fixture(autouse=True)
def no_mode_left() -> Iterator[None]:
    yield
    while (mode := _get_current_dispatch_mode()) is not None:
        mode.__exit__(None, None, None)


def closer() -> Closer:
    watch: Any = SimpleNamespace(sequence=SimpleNamespace(turn=0), idle_but=lambda _: True, propagating=False)
    return Closer(watch, {"ops": [0, 0]})


def test_it_leaves_no_mode_behind() -> None:
    look = closer()
    look.turned(0)
    assert _get_current_dispatch_mode() is not None
    look.close()
    assert _get_current_dispatch_mode() is None


def test_a_mode_that_the_job_has_entered_since_goes_on() -> None:
    look, job = closer(), Counting()
    look.turned(0)
    job.__enter__()
    look.close()
    assert _get_current_dispatch_mode() is job
    assert torch.ones(3).sum().item() == 3
    assert job.seen > 0
