"""Where a softmax goes over the samples of a batch."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from types import FrameType

NAMES = ("softmax", "log_softmax")  # of torch, of tensors and of torch.nn.functional


def softmaxes(rows: int, found: list[tuple[str, int]]) -> AbstractContextManager[Any]:
    """Adds to FOUND where a softmax goes over the first dimension of a tensor, which is that of the ROWS alone.

    Scores of each sample against all others have it twice, and are meant so.
    """
    from torch.overrides import TorchFunctionMode

    class Mode(TorchFunctionMode):  # type: ignore[misc]  # as torch has it in the job
        def __torch_function__(self, function: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
            given = kwargs or {}
            if getattr(function, "__name__", "") in NAMES and args:
                tensor, dim = args[0], given.get("dim", args[1] if len(args) > 1 else None)
                shape = list(getattr(tensor, "shape", ()))
                is_over_rows = isinstance(dim, int) and len(shape) > 1 and dim % len(shape) == 0
                if is_over_rows and shape[0] == rows and rows not in shape[1:]:
                    found.append(_line())
            return function(*args, **given)

    return Mode()


def _line() -> tuple[str, int]:
    """The line outside of torch that is being executed, of a file in the working folder; ("", 0) of any other."""
    left = tuple(f"{Path(file).parent}{os.sep}" for file in (str(sys.modules["torch"].__file__), __file__))
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(left):
        frame = frame.f_back
    path = os.path.relpath(frame.f_code.co_filename) if frame is not None else os.pardir
    return (path, frame.f_lineno) if frame is not None and not path.startswith(os.pardir) else ("", 0)
