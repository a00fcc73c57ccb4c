"""What logs and tracebacks say of a module that is not well made: error messages that have one meaning."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.examine.artefact.logs import Logs
from torchtriage.examine.artefact.logs.said import told
from torchtriage.examine.detector import Sighting, detector


@detector("log/super-init-missing")
def super_init_missing(logs: Logs) -> Iterator[Sighting]:
    """A module got a part before its own __init__ had run."""
    yield from told(logs, ("assigned-before-init",))


@detector("log/unregistered-modules")
def unregistered_modules(logs: Logs) -> Iterator[Sighting]:
    """An optimizer was given no parameter."""
    yield from told(logs, ("empty-parameter-list",))
