"""What logs and tracebacks say of ranks: error messages that have one meaning."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchtriage.examine.artefact.logs import Logs
from torchtriage.examine.artefact.logs.said import fact, told
from torchtriage.examine.detector import Sighting, detector

_WAITED = re.compile(
    r"Timed out waiting \d{1,12}ms for \w{1,12} operation to complete|"
    r"Watchdog caught collective operation timeout: WorkNCCL\([^)]{1,300}\)"
)


@detector("log/unused-parameters")
def unused_parameters(logs: Logs) -> Iterator[Sighting]:
    """Parameters got no gradient before the next step began."""
    yield from told(logs, ("unfinished-reduction", "lightning-unused-parameters"))


@detector("log/launch-environment")
def launch_environment(logs: Logs) -> Iterator[Sighting]:
    """A variable that the rendezvous needs is not set, or its port is taken."""
    yield from told(logs, ("environment-variable-missing", "launcher-variable", "address-in-use"))


@detector("log/global-rank-as-device")
def global_rank_as_device(logs: Logs) -> Iterator[Sighting]:
    """A process asked for a device that its machine does not have."""
    yield from told(logs, ("device-number",))


@detector("log/collective-on-some-ranks")
def collective_on_some_ranks(logs: Logs) -> Iterator[Sighting]:
    """Ranks are in different collectives."""
    yield from told(logs, ("collectives-differ",))


@detector("log/device-mismatch")
def device_mismatch(logs: Logs) -> Iterator[Sighting]:
    """One operation got tensors of different devices."""
    yield from told(logs, ("same-device", "input-and-weight-device", "index-device"))


@detector("log/collective-timeout")
def collective_timeout(logs: Logs) -> Iterator[Sighting]:
    """A rank waited in a collective until it gave up, and nothing in the logs went wrong before."""
    cause = logs.cause
    if cause is None or not (found := _WAITED.search(cause.text)):
        return
    says = next((each.says for each in cause.decoded if each.signature == "collective-timeout"), "")
    waited = f"{says or 'A rank waited for another until it gave up'} ({found[0]})"
    yield Sighting(cause.place, fact(logs, [cause], waited))
