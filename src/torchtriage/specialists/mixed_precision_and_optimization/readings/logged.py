"""What logs and tracebacks say of precision: error messages that have one meaning."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.examine.artefact.logs import Logs
from torchtriage.examine.artefact.logs.said import told
from torchtriage.examine.detector import Sighting, detector

_DTYPE_MISMATCH = (
    "expected-scalar-type",
    "same-dtype-matmul",
    "same-dtype",
    "same-dtype-self",
    "input-and-weight-type",
    "found-dtype",
    "vectors-dtype",
    "rnn-dtype",
    "index-put-dtype",
    "source-dtype",
    "scatter-dtype",
    "attention-dtype",
)


@detector("log/dtype-mismatch")
def dtype_mismatch(logs: Logs) -> Iterator[Sighting]:
    """The operands of one operation have different types."""
    yield from told(logs, _DTYPE_MISMATCH)


@detector("log/bce-under-autocast")
def bce_under_autocast(logs: Logs) -> Iterator[Sighting]:
    """Binary cross entropy of probabilities was called under autocast."""
    yield from told(logs, ("unsafe-to-autocast",))


@detector("log/scaler-not-updated")
def scaler_not_updated(logs: Logs) -> Iterator[Sighting]:
    """unscale_ was called twice between two updates."""
    yield from told(logs, ("unscaled-twice",))


@detector("log/scale-collapsing")
def scale_collapsing(logs: Logs) -> Iterator[Sighting]:
    """The loss scale fell to its least value."""
    yield from told(logs, ("scale-at-minimum", "smallest-scale-reached"))
