"""One line on a terminal's stderr while the job runs: where it is, how fast, what has been seen so far."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import TextIO

from torchtriage.examine.run.lines import Row, Tail
from torchtriage.examine.run.series.quantiles import number

NOTABLE = frozenset({"non-finite", "skip", "carried", "clip-scaled", "probe-off"})


class Line:
    """Follows the record of rank 0; on anything but a terminal it stays away."""

    def __init__(self, folder: Path, stream: TextIO | None = None) -> None:
        self._tail = Tail(folder / "rank0.jsonl")
        self.stream = stream or sys.stderr
        self.every = 1.0 if self.stream is not None and self.stream.isatty() else None  # none where stderr is closed
        self.step: int | None = None
        self.seconds: list[float] = []
        self.seen: Counter[str] = Counter()
        self._drawn = 0

    def draw(self) -> None:
        """Reads on and writes the line anew; the cursor goes back, so that the job's next line covers it."""
        self.read()
        if self.step is None:
            return
        width = max(shutil.get_terminal_size().columns - 1, 1)
        text = self.text()[:width]
        self._write(text + " " * (self._drawn - len(text)) + "\r")
        self._drawn = len(text)

    def clear(self) -> None:
        """Takes the line away."""
        if self._drawn:
            self._write(" " * self._drawn + "\r")
            self._drawn = 0

    def read(self) -> None:
        """Takes in what has been recorded since the last time."""
        self.seconds.clear()
        for event in self._tail.fresh():
            self._take(event)

    def text(self) -> str:
        """Step, rate, and how often each notable kind was recorded, without control characters."""
        parts = [f"torchtriage: step {self.step}"]
        if total := sum(self.seconds):
            parts.append(f"{number(len(self.seconds) / total)} it/s")
        parts += [f"{kind} {count}" for kind, count in sorted(self.seen.items())]
        return "".join(letter for letter in " · ".join(parts) if letter.isprintable())

    def _take(self, event: Row) -> None:
        try:
            kind = str(event["kind"])
            if kind == "step":
                self.step = int(event["step"])
                self.seconds.append(float(event["seconds"]))
            elif kind in NOTABLE:
                self.seen[kind] += 1
        except (ValueError, TypeError, KeyError):
            return

    def _write(self, text: str) -> None:
        try:
            self.stream.write(text)
            self.stream.flush()
        except OSError:
            self.every = None
