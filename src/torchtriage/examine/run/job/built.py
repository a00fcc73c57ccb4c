"""The optimizers of the job, and where they were built."""

from __future__ import annotations

import functools
import weakref
from typing import TYPE_CHECKING, Any

from . import wrapping

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from .job import Job


class Built:
    """The optimizers, and the user's line that built each; of one that is older than the watch, nothing."""

    def __init__(self) -> None:
        self._lines: weakref.WeakKeyDictionary[Any, tuple[str, int]] = weakref.WeakKeyDictionary()

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._lines))

    def __bool__(self) -> bool:
        return bool(self._lines)

    def at(self, optimizer: Any) -> tuple[str, int]:
        return self._lines.get(optimizer, ("", 0))

    def place(self, job: Job) -> None:
        import torch

        for older in job.alive(torch.optim.Optimizer):
            self._lines[older] = ("", 0)

        def building(original: Any) -> Any:
            @functools.wraps(original)
            def __init__(optimizer: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - it is one
                if not job.idle:
                    job.safely(self._note, optimizer, job)
                original(optimizer, *args, **kwargs)
                job.fire("built", optimizer)

            return __init__

        job.undo(wrapping.replace(torch.optim.Optimizer, "__init__", building))

    def _note(self, optimizer: Any, job: Job) -> None:
        self._lines[optimizer] = job.caller(_within_optimizer)


def _within_optimizer(frame: FrameType) -> bool:
    """Whether a frame builds an optimizer of the user's own class: whoever asked for it is of interest."""
    import torch

    return frame.f_code.co_name == "__init__" and isinstance(frame.f_locals.get("self"), torch.optim.Optimizer)
