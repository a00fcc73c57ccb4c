"""What is made of the record of a job: the faults and verdicts by name, and the evidence of a detector."""

from __future__ import annotations

from torchtriage.catalog.load import catalog
from torchtriage.core.evidence import Evidence, Observed, Outcome
from torchtriage.diagnose import weigh
from torchtriage.examine.detector import perform
from torchtriage.examine.run.record import RunRecord
from torchtriage.triage import detectors


class Judged:
    """specialist: whose faults alone are meant, if not those of all."""

    def __init__(self, record: RunRecord, specialist: str | None = None) -> None:
        self.specialist = specialist
        self.outcomes: list[Outcome] = list(perform(detectors("readings"), record))

    @property
    def faults(self) -> set[str]:
        found = [each.fault for each in weigh.findings(self.outcomes, catalog())]
        return {fault.slug for fault in found if self.specialist in (None, fault.specialist)}

    @property
    def verdicts(self) -> set[str]:
        return {verdict.verdict for verdict in weigh.verdicts(self.outcomes, catalog())}

    def evidence(self, detector: str) -> tuple[Evidence, ...]:
        (seen,) = [each for each in self.outcomes if each.detector == detector]
        assert isinstance(seen, Observed), seen
        return seen.evidence
