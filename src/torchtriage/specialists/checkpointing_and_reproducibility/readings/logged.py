"""What logs and tracebacks say of a state that is loaded: error messages that have one meaning."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.core.query import Decoded
from torchtriage.examine.artefact.logs import Logs
from torchtriage.examine.artefact.logs.said import Said, told
from torchtriage.examine.detector import Sighting, detector


@detector("log/checkpoint-incomplete")
def checkpoint_incomplete(logs: Logs) -> Iterator[Sighting]:
    """The scheduler resumed on an optimizer whose state was not restored."""
    yield from told(logs, ("schedule-without-rate",))


@detector("log/keys-mismatched")
def keys_mismatched(logs: Logs) -> Iterator[Sighting]:
    """A state was loaded with other keys than it was saved with."""
    yield from told(logs, ("state-dict-keys", "missing-keys", "unexpected-keys"), _names_keys)


def _names_keys(_: Decoded, said: Said) -> bool:
    """A state whose sizes alone differ has the right keys."""
    return any(each.signature in {"missing-keys", "unexpected-keys"} for each in said.decoded)
