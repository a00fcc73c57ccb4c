"""What a record must hold before its silence means anything."""

from __future__ import annotations

from torchtriage.examine.detector import CannotSee
from torchtriage.examine.run.record import RankRecord


def anything_learned(record: RankRecord) -> None:
    """A job that never runs backward has nothing to show here, and that is no health."""
    if not any(step["backward"] for step in record.all("step")) and not record.all("updates"):
        raise CannotSee(
            "no backward pass was seen", "Run the job until it trains: ten steps are enough for most readings."
        )
