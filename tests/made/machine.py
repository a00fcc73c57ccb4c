"""The machine under the tests: shared by all workers, but for a test that a clock decides and that others have disturbed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from fcntl import LOCK_EX, LOCK_SH, LOCK_UN, flock
from pathlib import Path

import pytest

from torchtriage.catalog.load import catalog
from torchtriage.core.case import Case

TRIES = 3


class Machine:
    """One worker's hold on the machine. FOLDER is the same for all workers."""

    def __init__(self, folder: Path) -> None:
        self._door, self._room = (open(folder / name, "w") for name in ("door", "room"))  # noqa: SIM115, PTH123

    def close(self) -> None:
        self._door.close()
        self._room.close()

    def share(self) -> None:
        """Waits while a test is alone, or about to be: it holds the door, so that the room gets empty."""
        flock(self._door, LOCK_EX)
        flock(self._room, LOCK_SH)
        flock(self._door, LOCK_UN)

    def leave(self) -> None:
        flock(self._room, LOCK_UN)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """No other worker runs a test meanwhile."""
        self.leave()
        flock(self._door, LOCK_EX)
        flock(self._room, LOCK_EX)
        try:
            yield
        finally:
            self.leave()
            flock(self._door, LOCK_UN)
            self.share()

    def until_told(self, attempt: Callable[[str], Case], slugs: Collection[str], *, lost: bool = False) -> Case:
        """The first ATTEMPT in which a busy machine hides none of SLUGS, or the last.

        Each gets a name of its own; all but the first have the machine for themselves. LOST: a busy machine may also
        hide them without a word.
        """
        case = attempt("first")
        for number in range(1, TRIES):
            if not (busy(case, slugs) or (lost and missed(case, slugs))):
                return case
            with self.alone():
                case = attempt(f"again{number}")
        return case


def skip_where_busy(case: Case, slugs: Collection[str]) -> None:
    """Skips the test where CASE says that this machine is too busy to show one of SLUGS."""
    for why in busy(case, slugs):
        pytest.skip(f"the machine is too busy: {why}")


def missed(case: Case, slugs: Collection[str]) -> set[str]:
    return set(slugs) - {finding.fault.slug for finding in case.findings}


def busy(case: Case, slugs: Collection[str]) -> list[str]:
    """Why those of SLUGS that are missing cannot be seen on a machine with so much else to do."""
    looks = {sign.detector for slug in missed(case, slugs) for sign in catalog().faults[slug].signs}
    return [each.why for each in case.inconclusive if each.detector in looks and "on a machine that" in each.unblock]
