"""What was counted since the steps were last numbered from 0."""

from __future__ import annotations

from typing import Any

from torchtriage.examine.run.record import RankRecord


def counted(record: RankRecord, kind: str) -> list[dict[str, Any]]:
    """The events of KIND since the steps were last numbered from 0: earlier turns were parts of a step."""
    last = max((at for at, event in enumerate(record.events) if event.get("kind") == "clock"), default=-1)
    return [event for event in record.events[last + 1 :] if event.get("kind") == kind]
