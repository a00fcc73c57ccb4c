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


@detector("log/checkpoint-corrupt")
def checkpoint_corrupt(logs: Logs) -> Iterator[Sighting]:
    """A checkpoint that was read is cut off or damaged."""
    names = ("no-central-directory", "storage-cut-off", "record-unreadable", "safetensors-header")
    yield from told(logs, names, _is_cut)


def _is_cut(decoded: Decoded, _: Said) -> bool:
    """A header of safetensors that is too large is that of another kind of file."""
    reason = decoded.fields.get("reason")
    return decoded.signature != "safetensors-header" or reason in ("MetadataIncompleteBuffer", "InvalidHeaderLength")


@detector("log/state-dict-not-called")
def state_dict_not_called(logs: Logs) -> Iterator[Sighting]:
    """load_state_dict was given a path, or a method that was not called."""
    yield from told(logs, ("state-no-dict",), _is_slip)


def _is_slip(decoded: Decoded, _: Said) -> bool:
    """Whatever else it was given is an object of the job's own."""
    return decoded.fields.get("given") in {"str", "pathlib.PosixPath", "method", "function"}


def _names_keys(_: Decoded, said: Said) -> bool:
    """A state whose sizes alone differ has the right keys."""
    return any(each.signature in {"missing-keys", "unexpected-keys"} for each in said.decoded)
