"""Frames of the user's code: the line that is running, and the file it stands in, told from ours and installed ones."""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType

OURS = Path(__file__).resolve().parents[4]  # the whole package: probes are ours too
_user: dict[str, str | None] = {}
_own: dict[str, bool] = {}


def caller(within: Callable[[FrameType], bool] | None = None) -> tuple[str, int]:
    """File and line of the nearest frame of the user's code; ("", 0) when there is none.

    Frames that are WITHIN something are passed over.
    """
    frame = nearest(sys._getframe(1))
    while within is not None and frame is not None and within(frame):
        frame = nearest(frame.f_back)
    return (str(path_of(frame.f_code)), frame.f_lineno) if frame is not None else ("", 0)


def callers(most: int) -> list[tuple[str, int]]:
    """File and line of the nearest frames of the user's code, the innermost first; at most MOST."""
    found: list[tuple[str, int]] = []
    frame = nearest(sys._getframe(1))
    while frame is not None and len(found) < most:
        found.append((str(path_of(frame.f_code)), frame.f_lineno))
        frame = nearest(frame.f_back)
    return found


def nearest(frame: FrameType | None) -> FrameType | None:
    """FRAME, or the nearest one that called it, whose code is the user's."""
    while frame is not None and path_of(frame.f_code) is None:
        frame = frame.f_back
    return frame


def path_of(code: CodeType | str) -> str | None:
    """The file of CODE, or one of that name, as the user would write it; None for what is installed or ours."""
    path = code if isinstance(code, str) else code.co_filename
    if path not in _user:
        _user[path] = _of_the_user(path)
    return _user[path]


def is_own(code: CodeType | str) -> bool:
    """Whether CODE, or the file of that name, is of our package."""
    path = code if isinstance(code, str) else code.co_filename
    if path not in _own:
        _own[path] = not path.startswith("<") and Path(_absolute(path)).resolve().is_relative_to(OURS)
    return _own[path]


def _of_the_user(path: str) -> str | None:
    """PATH as the user would write it; None for what is installed, generated, or ours."""
    if "/ipykernel_" in path or path.startswith("<ipython-input"):
        return "cell"
    if path.startswith("<") or "/torchinductor_" in path:  # what torch.compile has written
        return None
    full = Path(_absolute(path)).resolve()
    libraries: tuple[str | Path, ...] = (
        sysconfig.get_path("stdlib"),
        sysconfig.get_path("platstdlib"),
        OURS,
        *_of_torch(),
    )
    installed = {"site-packages", "dist-packages"} & set(full.parts)
    if installed or any(full.is_relative_to(Path(folder).resolve()) for folder in libraries):
        return None
    home = Path(_absolute(""))
    return str(full.relative_to(home)) if full.is_relative_to(home) else str(full)


def _absolute(path: str) -> str:
    """PATH from the root; from where the job has been, when its working folder is gone."""
    try:
        return os.path.join(os.getcwd(), path)  # noqa: PTH109, PTH118 - pathlib resolves what is to be asked here
    except FileNotFoundError:
        return os.path.join("/", path)  # noqa: PTH118


def _of_torch() -> list[Path]:
    torch = sys.modules.get("torch")
    return [Path(torch.__file__).parent] if torch is not None and torch.__file__ else []


def raised(error: BaseException) -> tuple[str, int]:
    """The innermost line of the user's code through which ERROR came; ("", 0) when there is none."""
    found = ("", 0)
    trace = error.__traceback__
    while trace is not None:
        path = trace.tb_frame.f_code.co_filename
        where = _user.setdefault(path, _of_the_user(path))
        if where is not None:
            found = (where, trace.tb_lineno)
        trace = trace.tb_next
    return found
