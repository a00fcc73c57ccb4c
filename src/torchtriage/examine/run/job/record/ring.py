"""The last rows of something, kept in a small file where even the sudden end of the process leaves them."""

from __future__ import annotations

import os

from .writer import inode, opened

WIDTH = 1024  # bytes of a row, with its line end


class Ring:
    """ROWS lines in the file PATH, each filled up with blanks; the newest takes the place of the oldest.

    Written by system calls, not in memory that is mapped to the file: a disk that fails, or a file that somebody cuts,
    would end the job there. What cannot be written is left out.
    """

    def __init__(self, path: str, rows: int) -> None:
        self.rows = rows
        self._file: int | None = None
        try:
            self._file = opened(path, os.O_CREAT | os.O_RDWR | os.O_TRUNC)
            self._inode = inode(self._file)
        except OSError:
            return
        self._write((b" " * (WIDTH - 1) + b"\n") * rows, 0)

    def put(self, number: int, text: str) -> None:
        """Row NUMBER, counted on and on; nothing where TEXT is too long."""
        data = text.encode()
        if len(data) < WIDTH:
            self._write(data.ljust(WIDTH - 1), number % self.rows * WIDTH)

    def mark(self, number: int, at: int, sign: bytes) -> None:
        """SIGN from byte AT of row NUMBER on, if that is one of the last ROWS."""
        self._write(sign, number % self.rows * WIDTH + at)

    def close(self) -> None:
        if self._file is not None and self._ours():
            os.close(self._file)
        self._file = None

    def _write(self, data: bytes, at: int) -> None:
        try:
            if self._file is not None and self._ours():
                os.pwrite(self._file, data, at)
        except OSError:
            self._file = None

    def _ours(self) -> bool:
        """Whether the number still names our file: a job may close every descriptor and open files of its own."""
        try:
            return self._file is not None and inode(self._file) == self._inode
        except OSError:
            return False
