"""Keeps the writes of a leg in its own folder: an audit hook, which sees every file that Python opens or moves.

A write through a link gets a copy of its own first. A file elsewhere that was there before the leg is not overwritten
and not removed: that ends the leg, and says so.
"""

from __future__ import annotations

import os
import sys
from _thread import get_ident
from typing import TYPE_CHECKING, Any

from .owning import owned

if TYPE_CHECKING:
    from collections.abc import Callable

REFUSED = 97  # the code of a process that was ended for what it was about to overwrite
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
MODES = frozenset("wax+")
NEVER_OURS = ("/dev/", "/proc/", "/sys/", "/run/")
PASSING = (".pyc", ".lock")  # what Python and libraries may write anew at any time


class Guard:
    """place: the leg's own folder, in which all is allowed; work: the mirror in it; free: folders of caches.

    heard: called with ("write" | "read" | "move" | "remove", path, further path) before it happens, for a trial that
    wants to know; whatever it raises is its own affair.
    """

    def __init__(self, place: str, work: str, free: list[str]) -> None:
        self.place, self.work, self.free = _real(place), _real(work), tuple(f"{_real(each)}/" for each in free)
        self.heard: Callable[[str, str, str], None] | None = None
        self._made: set[str] = set()
        self._inside: set[int] = set()  # threads that are at work here: what they open is ours
        self._tells: dict[str, Callable[..., object]] = {
            "open": self._open,
            "os.remove": lambda path, fd=-1: self._gone(_at(path, fd)),
            "os.rmdir": lambda path, fd=-1: self._own_parent(_at(path, fd)),
            "os.rename": lambda old, new, fd=-1, to=-1: self._moved(_at(old, fd), _at(new, to)),
            "os.mkdir": lambda path, _mode=0, fd=-1: self._own_parent(_at(path, fd)),
            "os.symlink": lambda _old, new, fd=-1: self.write(_at(new, fd)),
            "os.link": lambda old, new, fd=-1, to=-1: self._linked(_at(old, fd), _at(new, to)),
            "os.truncate": lambda path, _length=0: self.write(path),
            "os.utime": lambda path, *_: self._own(path),
            "os.chmod": lambda path, *_: self._own(path),
            "sqlite3.connect": self._database,
        }

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        """The audit hook itself; it must be quick, and nothing but a refusal may come out of it."""
        tell = self._tells.get(event)
        if tell is None:
            return
        thread = get_ident()
        if thread in self._inside:
            return
        self._inside.add(thread)
        try:
            tell(*arguments)
        except (OSError, TypeError, ValueError, AttributeError, UnicodeError):
            pass  # a path that is none: the job gets the error of its own call
        finally:
            self._inside.discard(thread)

    def _open(self, path: Any, mode: str | None = None, flags: int = 0) -> None:
        if isinstance(path, int):
            return
        if flags & WRITING or (mode is not None and not MODES.isdisjoint(mode)):
            self.write(path, empty="w" in mode if mode else bool(flags & os.O_TRUNC))
        elif self.heard is not None:
            self.heard("read", _whole(path), "")

    def write(self, path: Any, *, empty: bool = False) -> None:
        """PATH is about to be written; EMPTY: from its beginning, whatever is in it."""
        whole = _whole(path)
        if whole.startswith(NEVER_OURS) or not self._own(whole, empty=empty):
            return
        if self.heard is not None:
            self.heard("write", whole, "")

    def _gone(self, path: str) -> None:
        self._own_parent(path)
        self._elsewhere(os.path.join(_real(os.path.dirname(path)), os.path.basename(path)), "removed")
        if self.heard is not None:
            self.heard("remove", path, "")

    def _moved(self, old: str, new: str) -> None:
        self._own_parent(old)
        self._own_parent(new)
        for path, how in ((old, "moved away"), (new, "overwritten")):
            self._elsewhere(os.path.join(_real(os.path.dirname(path)), os.path.basename(path)), how)
        if self.heard is not None:
            self.heard("move", old, new)

    def _linked(self, old: str, new: str) -> None:
        """One file under two names: a write to either is one to both."""
        self.write(old)
        self.write(new)

    def _own(self, path: Any, *, empty: bool = False) -> bool:
        """Makes PATH the leg's own where it lies in the mirror; False where it is none of the leg's files."""
        whole = _whole(path)
        if self._is_within(whole, self.work):
            owned(self.place, self.work, whole, empty=empty)
        real = _real(whole)
        self._elsewhere(real, "overwritten")
        return self._is_within(real, self.place) or real in self._made

    def _own_parent(self, path: Any) -> None:
        parent = os.path.dirname(_whole(path))
        if self._is_within(parent, self.work):
            owned(self.place, self.work, parent, empty=False)

    def _database(self, path: Any) -> None:
        if isinstance(path, (str, bytes)) and os.fsdecode(path) not in ("", ":memory:"):
            self._own(path)

    def _elsewhere(self, real: str, how: str) -> None:
        """What is there already is refused, unless this leg has made it; what is new is noted."""
        if self._is_within(real, self.place) or real.startswith((*NEVER_OURS, *self.free)):
            return
        if real.endswith(PASSING) or "/__pycache__/" in real:
            return
        if self._is_within(real, _real(os.environ.get("TMPDIR") or "/nowhere")) or real in self._made:
            return
        if os.path.isfile(real):
            self._made.update(self._noted())
            if real not in self._made:
                self._refuse(real, how)
        elif how == "overwritten" and not os.path.exists(real):
            self._made.add(real)
            self._note("elsewhere.txt", real)

    def _refuse(self, real: str, how: str) -> None:
        self._note("refused.txt", f"{how}\t{real}\t{_of_the_user()}")
        os._exit(REFUSED)

    def _noted(self) -> list[str]:
        try:
            with open(f"{self.place}/elsewhere.txt", encoding="utf-8", errors="surrogateescape") as file:
                return file.read().splitlines()
        except FileNotFoundError:
            return []

    def _note(self, name: str, text: str) -> None:
        file = os.open(f"{self.place}/{name}", os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            os.write(file, os.fsencode(f"{text}\n"))
        finally:
            os.close(file)

    @staticmethod
    def _is_within(path: str, folder: str) -> bool:
        return path == folder or path.startswith(f"{folder}/")

    def torch_imported(self) -> None:
        """torch.save opens its file in C++, which no audit hook sees."""
        import functools

        import torch

        inner = torch.save

        @functools.wraps(inner)
        def save(obj: Any, f: Any, *arguments: Any, **named: Any) -> Any:
            file: Any = f
            if isinstance(f, (str, bytes, os.PathLike)):
                self("open", (f, "w", 0))
            return inner(obj, file, *arguments, **named)

        torch.save = torch.serialization.save = save


standing: list[Guard] = []
"""The guard of this process."""


def begin() -> None:
    """Places the guard of the leg that the environment names, for as long as this process lives."""
    free = [each for each in os.environ.get("TORCHTRIAGE_FREE", "").split(os.pathsep) if each]
    guard = Guard(os.environ["TORCHTRIAGE_PLACE"], os.environ["TORCHTRIAGE_WORK"], free)
    sys.addaudithook(guard)
    standing.append(guard)


def _whole(path: Any) -> str:
    return os.path.abspath(os.fsdecode(path))


def _at(path: Any, fd: Any = -1) -> str:
    """PATH, relative to the folder behind the descriptor FD where one is given."""
    text = os.fsdecode(path)
    if isinstance(fd, int) and fd >= 0 and not os.path.isabs(text):
        return os.path.join(os.readlink(f"/proc/self/fd/{fd}"), text)
    return os.path.abspath(text)


def _real(path: str) -> str:
    return os.path.realpath(path)


def _of_the_user() -> str:
    """The innermost line that is not a library's."""
    frame: Any = sys._getframe(1)
    ours = os.path.dirname(os.path.abspath(__file__))
    library = os.path.dirname(os.__file__)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(("<", ours, library)) and "-packages" not in name:
            return f"{name}:{frame.f_lineno}"
        frame = frame.f_back
    return ""
