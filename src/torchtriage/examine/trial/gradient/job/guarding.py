"""Files of the user's are read, never written: what the module does when it is imported stays in the scratch folder."""

from __future__ import annotations

import os
import sys
from typing import Any

CHANGING = {
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.truncate",
    "os.link",
    "os.symlink",
    "os.chmod",
    "shutil.rmtree",
    "shutil.move",
}


def guard(scratch: str, folder: str) -> None:
    """From now on nothing is written below FOLDER, the user's; elsewhere no file that is there, but for caches."""
    home = os.path.realpath(scratch) + os.sep
    caches = (os.environ.get("XDG_CACHE_HOME") or "~/.cache", os.environ.get("TMPDIR") or "/tmp")  # noqa: S108 - theirs
    free = (home, "/dev/", "/proc/")
    loose = tuple(os.path.realpath(os.path.expanduser(each)) + os.sep for each in caches)  # noqa: PTH111
    own = os.path.realpath(folder) + os.sep

    def refuse(path: Any, event: str) -> None:
        if not isinstance(path, (str, bytes, os.PathLike)):
            return
        where = os.path.realpath(os.fsdecode(path))
        if where.startswith(free) or (where.startswith(loose) and not where.startswith(own)):
            return
        if where.startswith(own) or os.path.lexists(where):
            raise PermissionError(f"{where}: a trial of a gradient writes nothing there ({event})")

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            path, mode, flags = args
            writes = isinstance(mode, str) and any(each in mode for each in "wax+")
            if writes or (isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_TRUNC)):
                refuse(path, event)
        elif event in CHANGING:
            for path in args[:2] if event in {"os.rename", "shutil.move"} else args[:1]:
                refuse(path, event)

    sys.addaudithook(hook)
