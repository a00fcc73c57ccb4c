"""Lines of JSON that a job writes, of which the last may be half there, and others may be anything."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

Event = dict[str, Any]


def events(lines: Iterable[bytes]) -> Iterator[Event]:
    """Those of LINES that are JSON objects."""
    for line in lines:
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict):
            yield event


class Tail:
    """Follows a file that grows."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._offset = 0

    def fresh(self) -> list[Event]:
        """What has been written since the last time; half a line waits for its other half."""
        try:
            with self.path.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
        except OSError:
            return []
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        return list(events(whole.splitlines()))
