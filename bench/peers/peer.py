"""What a peer is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from corpus import Job


@dataclass(frozen=True)
class Said:
    """Of one run: each word (a rule, a verdict) with whether it is above info; the seconds; what went wrong, or ""."""

    words: frozenset[tuple[str, bool]]
    seconds: float
    trouble: str = ""


class Peer:
    """A tool that diagnoses runs, as it is installed in an environment of its own.

    package: its name on PyPI. how: the way it is run, in words. means: by its word, our faults for which it could
    stand. most: how many jobs of a kind it is shown where one costs it minutes; None for all.
    """

    package: ClassVar[str]
    how: ClassVar[str]
    means: ClassVar[dict[str, frozenset[str]]]
    most: ClassVar[int | None] = None

    def __init__(self, tools: Path, folder: Path) -> None:
        """TOOLS: the programs of its environment. FOLDER: empty, and its own as long as it is compared."""
        self.tools, self.folder = tools, folder

    def learned(self, healthy: Sequence[Job]) -> Sequence[Job]:
        """Looks at what it needs to see first; returns the healthy jobs that it has not seen."""
        return healthy

    def said(self, job: Job) -> Said:
        """Runs a job to its end."""
        raise NotImplementedError


def faults(*slugs: str) -> frozenset[str]:
    return frozenset(" ".join(slugs).split())
