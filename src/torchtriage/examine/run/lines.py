"""Lines of JSON that a job writes, of which the last may be half there, and others may be anything."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def rows(lines: Iterable[bytes]) -> Iterator[Row]:
    """Those of LINES that are JSON objects."""
    for line in lines:
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict):
            yield row


class Tail:
    """Follows a file that grows."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._offset = 0

    def fresh(self) -> list[Row]:
        """What has been written since the last time; half a line waits for its other half."""
        try:
            with self.path.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
        except OSError:
            return []
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        return list(rows(whole.splitlines()))
