"""Sees the user's own lines that ask for the time, for entropy, for a process number or for the order of a folder."""

# pathlib would be imported at the start of every process of the job, most of which never need it.
# ruff: noqa: PTH100, PTH118, PTH120

from __future__ import annotations

import functools
import json
import os
import random
import sys
import sysconfig
import time
from typing import Any

from . import fixed

CLOCKS = ("time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "process_time")
SEEKING = 8  # frames between the user's line and the function of the library that asks
LINES = 400  # that are noted by one process
_homes: list[str] = []
_users: dict[str, bool] = {}


class Asking:
    """turn: of the training, told by the fingerprints. wants: the explanations that this leg tries."""

    def __init__(self, folder: str, wants: frozenset[str]) -> None:
        self.folder, self.wants = folder, wants
        self.turn, self.worker = 0, False
        self._seen: set[tuple[Any, ...]] = set()

    def note(self, what: str, frame: Any, **fields: Any) -> None:
        """One line for each WHAT of a line of the user's; who is no user's is nobody."""
        user = of_the_user(frame)
        if user is None:
            return
        key = what, user.f_code.co_filename, user.f_lineno, *fields.items()
        if key in self._seen or len(self._seen) >= LINES:
            return
        self._seen.add(key)
        told = {"what": what, "path": key[1], "line": key[2], "turn": self.turn, "pid": os.getpid(), **fields}
        data = (json.dumps({**told, "worker": self.worker}) + "\n").encode()
        flags = os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
        try:
            file = os.open(os.path.join(self.folder, "sources.jsonl"), flags, 0o644)
        except OSError:
            return
        try:
            os.write(file, data)
        finally:
            os.close(file)

    def forked(self) -> None:
        self.worker = True
        self._seen.clear()


def of_the_user(frame: Any) -> Any:
    """FRAME, or the nearest that called it, whose code is the user's; None beyond a few."""
    for _ in range(SEEKING):
        if frame is None:
            return None
        name = frame.f_code.co_filename
        known = _users.get(name)
        if known is None:
            known = _users[name] = _is_users(name)
        if known:
            return frame
        frame = frame.f_back
    return None


def _is_users(name: str) -> bool:
    if not _homes:
        ours = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 4))
        bin_ = os.path.join(sys.prefix, "bin")  # torchrun and its like
        _homes.extend((sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), bin_, ours))
    full = os.path.abspath(name)
    return not name.startswith("<") and "-packages" not in full and not full.startswith(tuple(_homes))


def begin() -> Asking:
    """Puts itself between the user and these functions, for as long as this process lives."""
    wants = frozenset(os.environ.get("TORCHTRIAGE_FIXED", "").split())
    asking = Asking(os.environ["TORCHTRIAGE_FOLDER"], wants)
    for name in CLOCKS:
        _put(time, name, functools.partial(_asked, asking, f"time.{name}", fixed.clock(name, wants)))
    _put(os, "urandom", functools.partial(_asked, asking, "os.urandom", fixed.entropy(wants), everyone=True))
    library: Any = random
    library._urandom = os.urandom
    _put(os, "getpid", functools.partial(_asked, asking, "os.getpid", fixed.process(wants)))
    for name in ("listdir", "scandir"):
        _put(os, name, functools.partial(_listed, asking, name))
    _put(random, "seed", functools.partial(_seeded, asking, "random"))
    _put(random.Random, "seed", functools.partial(_own, asking))
    fixed.begin(wants, of_the_user)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=asking.forked)
    package: Any = sys.modules[__name__.partition(".")[0]]
    package.asking = asking
    return asking


def _put(owner: Any, name: str, make: Any) -> None:
    own = getattr(owner, name)
    setattr(owner, name, functools.wraps(own)(make(own)))


def _asked(asking: Asking, what: str, instead: Any, original: Any, *, everyone: bool = False) -> Any:
    """INSTEAD, where there is one, answers the user's own code, or EVERYONE."""
    of = _is_users

    def answer(*args: Any, **kwargs: Any) -> Any:
        frame = sys._getframe(1)
        name = frame.f_code.co_filename
        users = _users.get(name)
        if users is None:
            users = _users[name] = of(name)
        if users or everyone:
            asking.note(what, frame)
            if instead is not None and everyone:
                return instead(*args, users=of_the_user(frame) is not None)
            if instead is not None:
                return instead(*args, **kwargs)
        return original(*args, **kwargs)

    return answer


def _listed(asking: Asking, name: str, original: Any) -> Any:
    def listed(*args: Any, **kwargs: Any) -> Any:
        found = original(*args, **kwargs)
        frame = of_the_user(sys._getframe(1))
        if frame is None:
            return found
        asking.note(f"os.{name}", frame)
        return fixed.ordered(name, found) if "listing" in asking.wants else found

    return listed


def _seeded(asking: Asking, source: str, original: Any) -> Any:
    """A call that seeds a global generator; without a number the seed is drawn from the system."""

    def seed(a: Any = None, *args: Any, **kwargs: Any) -> Any:
        if a is None:
            asking.note(f"{source} without a seed", sys._getframe(1))
            a = 0 if "seeds" in asking.wants else None
        else:
            asking.note("seed", sys._getframe(1), of=source, value=repr(a)[:80])
        return original(a, *args, **kwargs)

    return seed


def _own(asking: Asking, original: Any) -> Any:
    """A generator of the user's own that is made without a seed."""

    def seed(self: Any, a: Any = None, *args: Any, **kwargs: Any) -> Any:
        if a is None and type(self) is random.Random:
            frame: Any = sys._getframe(1)
            while frame is not None and frame.f_code.co_filename == random.__file__:
                frame = frame.f_back
            if frame is not None and _is_users(frame.f_code.co_filename):  # tempfile makes such generators, too
                asking.note("random.Random without a seed", frame)
                a = 0 if "seeds" in asking.wants else None
        return original(self, a, *args, **kwargs)

    return seed
