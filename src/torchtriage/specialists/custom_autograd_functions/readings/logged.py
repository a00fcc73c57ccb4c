"""What logs and tracebacks say of a Function: error messages that have one meaning."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.examine.artefact.logs import Logs
from torchtriage.examine.artefact.logs.said import told
from torchtriage.examine.detector import Sighting, detector


@detector("log/gradient-count")
def gradient_count(logs: Logs) -> Iterator[Sighting]:
    """Backward returned another number of gradients than forward has inputs."""
    yield from told(logs, ("gradient-count", "gradient-for-no-input"))


@detector("log/saved-non-tensor")
def saved_non_tensor(logs: Logs) -> Iterator[Sighting]:
    """save_for_backward was given what is no tensor."""
    yield from told(logs, ("saved-no-tensor",))
