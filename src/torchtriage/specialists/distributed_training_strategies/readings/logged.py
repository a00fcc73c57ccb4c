"""What logs show of ranks beyond the meaning of one message: who waited, and what only follows from a failure."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.core.query import Decoded
from torchtriage.examine.artefact.logs import Logs
from torchtriage.examine.artefact.logs.marks import LAUNCHER, LOST, WAITED
from torchtriage.examine.artefact.logs.messages import meaning, sightings
from torchtriage.examine.artefact.logs.said import Said, fact
from torchtriage.examine.detector import Sighting, detector

_SIGNALLED = 128
"""Exit codes above it are those of a shell whose program a signal ended: 137 is SIGKILL."""


@detector("log/collective-timeout")
def collective_timeout(logs: Logs) -> Iterator[Sighting]:
    """A rank waited in a collective until it gave up, and nothing in the logs went wrong before."""
    if (cause := logs.cause) is None or (waited := meaning(cause)) is None or waited.faults != ("collective-timeout",):
        return
    yield Sighting(cause.place, fact(logs, [cause], f"{waited.says} ({waited.text})"))


@detector("log/global-rank-as-device")
def global_rank_as_device(logs: Logs) -> Iterator[Sighting]:
    """A rank asked for a device that its machine does not have."""

    def fits(message: Decoded, said: Said) -> bool:
        return message.signature == "device-number" and said.rank is not None

    yield from sightings(logs, "device-unavailable", fits)


@detector("log/first-failure-missing")
def first_failure_missing(logs: Logs) -> Iterator[Sighting]:
    """What the log holds only follows from a failure that it does not show."""
    root = next((each for each in logs.exits if each.is_root), None)
    if root is not None and (root.code < 0 or root.code > _SIGNALLED):
        return  # a signal: who sent it is another question
    cause = logs.cause
    if cause is None or cause.tier not in (WAITED, LOST, LAUNCHER) or not _is_consequence(cause):
        return
    who = f"; rank {root.rank} ended first, with exit code {root.code}" if root else ""
    host = f" on {root.host}" if root and root.host else ""
    place = Place(root.path, root.line, rank=root.rank) if root and cause.tier == LAUNCHER else cause.place
    says = f"{cause.headline}: this follows from a failure whose own error is not in the log{who}{host}"
    yield Sighting(place, says)


def _is_consequence(said: Said) -> bool:
    """Whether nothing in SAID names a fault of its own, such as the error for which a watchdog ended."""
    found = meaning(said)
    is_stopped = "KeyboardInterrupt" in said.text or any(each.signature == "signal-received" for each in said.decoded)
    if found is None:
        return not is_stopped and said.tier != WAITED
    return not is_stopped and (found.faults == ("first-failure-missing",))
