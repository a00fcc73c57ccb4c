"""What logs and tracebacks say of speed: error messages that have one meaning."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.examine.artefact.logs import Logs
from torchtriage.examine.artefact.logs.said import told
from torchtriage.examine.detector import Sighting, detector


@detector("log/recompiling")
def recompiling(logs: Logs) -> Iterator[Sighting]:
    """torch.compile gave up on a function after too many compilations."""
    yield from told(logs, ("recompile-limit",))


@detector("log/loader-args-invalid")
def loader_args_invalid(logs: Logs) -> Iterator[Sighting]:
    """A DataLoader was given arguments that exclude each other."""
    yield from told(logs, ("workers-needed", "loader-options"))
