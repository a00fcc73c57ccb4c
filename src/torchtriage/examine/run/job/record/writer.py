"""The file of one process: JSON lines, each written whole, so that a kill loses a quarter of a second at most."""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import suppress
from threading import Lock
from time import perf_counter_ns as now
from typing import TYPE_CHECKING, Any

from ..events import Slow, Thinned, replace, to_row

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..events import Event, Start


def _plain(value: Any) -> Any:
    """A number of NumPy's, of which a job may make a layer: nn.Linear(np.int64(8), 2)."""
    if type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0:
        return value.item()
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


_JSON = json.JSONEncoder(separators=(",", ":"), default=_plain)
AT_ONCE = 200  # lines of steps that do not wait: a short job may die at any of them
HELD = 250_000_000  # nanoseconds for which lines of steps may wait for each other: a write costs as much as ten of them
PENDING = 1000  # lines kept by a process that has not yet done anything that matters
LINES = 1000  # of one kind that are all written; later ever fewer. Steps are thinned by the clock
ROOM = 180 << 20  # bytes in all, whatever probes write
ASIDE = 1 << 20  # bytes in the file of the workers
PATIENCE = 2_000_000_000  # nanoseconds of the job's that writes may take in all, or 2 % of its time if that is more
LAST = ("end", "error", "thinned")  # kinds that are written even then


class Writer:
    """Lines for FOLDER/rank<N>.jsonl, kept back until `open`: a process that trains nothing leaves no file.

    A rank that torchrun has started anew writes rank<N>.r<times>.jsonl, a second process of the same rank
    rank<N>.<pid>.jsonl. A forked child starts a file of its own.
    Whatever goes wrong with the disk ends the recording, never the job. A file never holds much more than ROOM.
    """

    def __init__(self, folder: str, rank: Callable[[], int], first: Callable[[], Start]) -> None:
        self.folder = folder
        self.rank = 0
        self.off = False
        self._rank, self._first = rank, first
        self._file: int | None = None
        self._inode: tuple[int, int] | None = None
        self._pending: list[Event] = []
        self._counts: dict[str, int] = {}
        self._written = 0
        self._opening = Lock()
        self._rows: list[str] = []
        self._flushed = self._steps = 0
        self._waited = self._opened = 0  # nanoseconds: for writes in all, and since when

    @property
    def opened(self) -> bool:
        return self._file is not None

    def ranked(self) -> int:
        """The rank by which a file of this process is called, whether there is one yet or not."""
        return self._rank()

    def open(self) -> None:
        """Creates the file and writes its first line and what was kept back."""
        with self._opening:  # two threads may begin to train at the same moment
            if not self.opened and not self.off:
                self._begin()

    def _begin(self) -> None:
        self.rank = self._rank()
        first = self._first()
        lines = [replace(first, step=0), *self._pending]
        try:
            file = self._create(first.restart)
            self._inode = inode(file)
        except OSError:
            self.off = True
            return
        self._file, self._pending, self._opened, self._waited = file, [], now(), 0
        for line in lines:
            self._line(line)

    def write(self, event: Event) -> None:
        """Writes EVENT; one of a kind that has come often may be left out, which Thinned says once."""
        kind = event.kind
        count = self._counts[kind] = self._counts.get(kind, -1) + 1
        if count == LINES:
            self._line(Thinned(step=event.step, of=kind, after=LINES))
        if (count < LINES or kept(count, LINES)) and (self._written < ROOM or kind in LAST):
            self._line(event)

    def aside(self, event: Event) -> None:
        """Writes EVENT to the file that the workers of this rank's loaders share, whole, while little is in it."""
        path = f"{self.folder}/workers{self._rank()}.jsonl"
        with suppress(OSError):
            file = opened(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
            try:
                if os.fstat(file).st_size < ASIDE:
                    os.write(file, (_encode(event) + "\n").encode())
            finally:
                os.close(file)

    def write_at_once(self, event: Event) -> None:
        """Writes EVENT from another thread than the job's own, past the rows that wait."""
        if self._file is not None and not self.off and self._written < ROOM and self._ours():
            data = (_encode(event) + "\n").encode()
            with suppress(OSError):
                self._written += os.write(self._file, data)

    def note(self, event: Event) -> None:
        """Appends EVENT to the list of processes."""
        name = os.environ.get("TORCHTRIAGE_NOTES", "processes.jsonl")
        with suppress(OSError):
            file = opened(f"{self.folder}/{name}", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
            try:
                os.write(file, (_encode(event) + "\n").encode())
            finally:
                os.close(file)

    def put(self, text: str, ended: int) -> None:
        """Writes TEXT, the JSON object of a step that ENDED then, in nanoseconds: at once or with its neighbours."""
        if self._written >= ROOM or self._file is None:
            return
        self._rows.append(text)
        self._steps += 1
        if self._steps < AT_ONCE or ended - self._flushed >= HELD:
            self._flushed = ended
            self.flush()

    def _line(self, event: Event) -> None:
        if self._file is not None:
            self._rows.append(_encode(event))
            if not event.has_time:
                self.flush()
        elif len(self._pending) < PENDING:
            self._pending.append(event)

    def flush(self) -> None:
        """Writes the lines that wait."""
        rows, self._rows = self._rows, []
        if self.off or self._file is None or not rows:
            return
        data = ("\n".join(rows) + "\n").encode()
        before, self._written = self._written, self._written + len(data)
        began = now()
        try:
            self.off = not self._ours() or os.write(self._file, data) != len(data)
        except OSError:
            self.off = True
        self._waited += now() - began
        if self._waited > PATIENCE and self._waited > (now() - self._opened) / 50 and not self.off:
            self._give_up()
        if before < ROOM <= self._written:
            self._line(Thinned(of="all", after=ROOM))

    def _give_up(self) -> None:
        """The job waits for a slow disk, as a shared one may be on one host: the record ends, the job goes on."""
        event = Slow(seconds=round(self._waited / 1e9, 1))
        with suppress(OSError):
            os.write(self._file or -1, (_encode(event) + "\n").encode())
        self.off = True

    def close(self) -> None:
        """Writes the lines that wait, and nothing more."""
        self.flush()
        if self._file is not None and self._ours():
            os.close(self._file)
        self._file, self.off = None, True

    def forked(self) -> None:
        """In a forked child: the parent's file is not ours."""
        self._rows = []
        self.close()
        self._pending, self.off = [], False
        self._counts, self._written, self._steps = {}, 0, 0
        self._opening = Lock()  # whoever held it stayed in the parent

    def _ours(self) -> bool:
        """Whether the number still names our file: a job may close every descriptor and open files of its own."""
        try:
            return self._file is not None and inode(self._file) == self._inode
        except OSError:
            return False

    def _create(self, restart: int) -> int:
        """A new file; a process that has replaced itself by exec has its number, and the names, of the one before."""
        path, own = f"{self.folder}/rank{self.rank}{f'.r{restart}' if restart else ''}", os.getpid()
        for name in ("", f".{own}", *(f".{own}.{number}" for number in range(2, 100))):
            with suppress(FileExistsError):
                return opened(f"{path}{name}.jsonl", os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND)
        raise FileExistsError(path)


def opened(path: str, flags: int) -> int:
    """A descriptor that no child gets, and that is none of the three standard ones, which a job may have closed."""
    file = os.open(path, flags | os.O_CLOEXEC, 0o644)
    if file > 2:
        return file
    try:
        return fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, 3)
    finally:
        os.close(file)


def _encode(event: Event) -> str:
    return _JSON.encode(to_row(event))


def kept(number: int, dense: int) -> bool:
    """Whether the one of that NUMBER, from 0, is kept: the first DENSE all, and of ten times as many a tenth.

    So it goes on: however many there are, each power of ten adds nine tenths of DENSE.
    """
    return number < dense or number % 10 ** len(str(number // dense)) == 0


def inode(file: int) -> tuple[int, int]:
    """What an open descriptor names; raises OSError when it names nothing."""
    about = os.fstat(file)
    return about.st_dev, about.st_ino
