"""What logs show of a crash beyond the meaning of one message: the loss that they print, and assertions in kernels."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.core.query import Decoded
from torchtriage.examine.artefact.logs import Logs
from torchtriage.examine.artefact.logs.messages import meaning, sightings, sightings_by_code, writes_file
from torchtriage.examine.artefact.logs.said import Said, fact
from torchtriage.examine.artefact.logs.series import SCALE
from torchtriage.examine.detector import Sighting, detector

_CRASHED = re.compile(r"SIG(?:SEGV|ABRT|BUS|ILL|FPE)\b|Segmentation fault|Bus error|core dumped")
_STOPPED = re.compile(r"DUE TO (?:TIME LIMIT|PREEMPTION|NODE FAILURE|JOB REQUEUE)")


@detector("log/native-crash")
def native_crash(logs: Logs) -> Iterator[Sighting]:
    """A signal of a crash ended the process, or an internal check failed."""
    yield from sightings(logs, "native-crash")
    for said in logs.causes:
        if said.kind == "ended" and meaning(said) is None and _CRASHED.search(said.text):
            yield Sighting(said.place, fact(logs, [said], said.headline))


@detector("log/loader-workers-failed")
def loader_workers_failed(logs: Logs) -> Iterator[Sighting]:
    """Workers cannot be started or do not deliver; what cannot be pickled was on its way to them, and not to a file."""
    yield from sightings(logs, "loader-workers-failed")
    yield from sightings_by_code(logs, "cannot-pickle", lambda code: not writes_file(code))


@detector("log/stopped-from-outside")
def stopped_from_outside(logs: Logs) -> Iterator[Sighting]:
    """The scheduler or the cluster stopped the job."""
    for said in logs.causes:
        is_told = said.kind == "ended" and _STOPPED.search(said.text)
        found = meaning(said)
        if is_told or (said is logs.cause and found is not None and found.faults == ("stopped-from-outside",)):
            yield Sighting(said.place, fact(logs, [said], said.headline))


@detector("log/non-finite-origin")
def non_finite_origin(logs: Logs) -> Iterator[Sighting]:
    """The loss that the log prints ceased to be finite, and stayed so."""
    for lost in (each for each in logs.lost if each.name != SCALE):
        before = f"after {lost.finite} finite values" if lost.finite else "from its first value on"
        fact = f"{lost.name} is {lost.value} {before}, and in the {lost.bad} lines from here to the end"
        yield Sighting(Place(lost.path, lost.line, rank=lost.rank, step=lost.step), fact)
    yield from sightings(logs, "non-finite-origin")


@detector("log/index-out-of-range")
def index_out_of_range(logs: Logs) -> Iterator[Sighting]:
    """An index is not below the size of its table."""
    asserted = [each for said in logs.said for each in said.decoded if each.signature == "kernel-assertion"]
    is_another_check = any(not each.faults for each in asserted)

    def fits(message: Decoded, _: Said) -> bool:
        """An assertion on the device is usually about an index; the kernel's own line says which check it was."""
        return message.signature != "device-side-assert" or not is_another_check

    yield from sightings(logs, "index-out-of-range", fits)
