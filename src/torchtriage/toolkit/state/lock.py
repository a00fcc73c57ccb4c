"""Who writes into a folder: one process of all hosts that see it, until it ends, however it ends."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path
from typing import ClassVar

from torchtriage.core.errors import TriageError

_NO_LOCKS = {errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK, errno.EINVAL}


class Lock:
    """A record lock on a file: the system takes it back from a killed process, and forked workers never have it."""

    _ours: ClassVar[dict[tuple[int, str], Lock]] = {}  # a record lock does not keep out its own process

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None
        self._process = 0
        self._sure = False

    def held(self) -> bool:
        """Whether no other process can be writing; False where the file system has no locks."""
        return self._sure and self._process == os.getpid()

    def take(self) -> None:
        """Takes the lock, or has it already; raises TriageError where another writer has it, or OSError."""
        if self._process == os.getpid():
            return
        key = (os.getpid(), str(self._path.resolve()))
        if key in self._ours:
            raise self._refused("another TrainingState of this process")
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0), 0o666)
        try:
            self._sure = self._locked(file)
        except BaseException:
            os.close(file)
            raise
        self._file, self._process = file, os.getpid()
        self._ours[key] = self

    def release(self) -> None:
        if self._file is not None and self._process == os.getpid():
            self._ours.pop((self._process, str(self._path.resolve())), None)
            with contextlib.suppress(OSError):
                os.close(self._file)
        self._file, self._process, self._sure = None, 0, False

    def _locked(self, file: int) -> bool:
        try:
            import fcntl
        except ImportError:  # Windows
            return False
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in _NO_LOCKS:
                return False
            if error.errno not in (errno.EACCES, errno.EAGAIN):
                raise
            raise self._refused("another process") from error
        return True

    def _refused(self, who: str) -> TriageError:
        do = "Give each training a folder of its own, end the other one, or close its TrainingState."
        return TriageError(f"{who} writes checkpoints there", str(self._path.parent), do)
