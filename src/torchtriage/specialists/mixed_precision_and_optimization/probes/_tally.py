"""How often something has happened, which is written down ever more rarely."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

    from .events import Recurrence

TIMES = frozenset({1, 3, 10, 100, 1000, 10_000, 100_000})  # at which it is written down


class Tally:
    """counts: by kind of event and what else tells one from another."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.counts: dict[tuple[str | int, ...], int] = {}

    def tell(self, event: Recurrence, *key: str | int) -> None:
        """Counts EVENT; KEY tells it from others of its kind, or else its line does."""
        key = (event.kind, *(key or (event.path, event.line)))
        event.times = self.counts[key] = self.counts.get(key, 0) + 1
        if event.times in TIMES:
            self.job.record(event)
