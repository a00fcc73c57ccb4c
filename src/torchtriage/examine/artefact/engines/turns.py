"""Files are handed out one by one; one whose reader ended without an answer is handed out once more."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Sequence
from time import monotonic
from typing import NamedTuple, Protocol

from torchtriage.examine.artefact.engines import ALONE, Told

TRIES = 2


class Died(NamedTuple):
    """What read a file has ended without an answer. how: in words."""

    how: str


class Pool(Protocol):
    """What reads. rooms: how many files at once in each of the TRIES."""

    rooms: tuple[int, ...]

    def start(self, path: str) -> Hashable:
        """Hands a file to who is free."""
        raise NotImplementedError

    def ended(self, seconds: float) -> Iterable[tuple[Hashable, Told | Died]]:
        """What has come, as soon as something has, or after SECONDS."""
        raise NotImplementedError

    def end(self, key: Hashable) -> None:
        """Ends what reads that file; nothing comes of it any more."""

    def close(self) -> None:
        """Ends all."""


def taken(paths: Sequence[str], pool: Pool, patience: float) -> Iterator[tuple[str, Told]]:
    """What came of each of PATHS, in whatever order. A file that takes longer than PATIENCE seconds has died, too."""
    left, how = list(paths), ""
    for turn in range(TRIES):
        again = []
        for path, told in _turn(left, pool, pool.rooms[turn], patience):
            if isinstance(told, Told):
                yield path, told
            elif turn + 1 < TRIES:
                again.append(path)
            else:
                how = told.how
                yield path, Told(why=f"not read: {how}, in each of {TRIES} tries", do=ALONE, lost=True)
        left = sorted(again)


def _turn(paths: Sequence[str], pool: Pool, room: int, patience: float) -> Iterator[tuple[str, Told | Died]]:
    waiting, running = deque(paths), dict[Hashable, tuple[str, float]]()
    while waiting or running:
        while waiting and len(running) < room:
            path = waiting.popleft()
            running[pool.start(path)] = path, monotonic()
        soonest = min(since for _, since in running.values()) + patience
        for key, told in pool.ended(max(soonest - monotonic(), 0.0)):
            yield running.pop(key)[0], told
        for key in [key for key, (_, since) in running.items() if monotonic() - since >= patience]:
            pool.end(key)
            yield running.pop(key)[0], Died(f"nothing had come of it after {patience:g} s")
