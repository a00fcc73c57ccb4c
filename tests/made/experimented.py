"""Functions that train, experimented on in forks of this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from torchtriage.catalog.load import catalog
from torchtriage.core.evidence import Evidence, Observed
from torchtriage.diagnose import weigh
from torchtriage.examine.detector import perform
from torchtriage.examine.trial.experiment.conduct import RECIPES, Experiment, Wanted, experiment
from torchtriage.examine.trial.leg.execute import Leg
from torchtriage.examine.trial.leg.fork import forking
from torchtriage.triage import detectors, probes

STEPS = 32


def tried(folder: Path, job: Callable[[], object], recipes: frozenset[str] = frozenset(RECIPES)) -> Experiment:
    """What becomes of JOB, which trains, with branches of STEPS."""

    def leg(_leg: Leg) -> None:
        job()

    return experiment(
        Wanted(
            ("a function",),
            folder / "run",
            recipes,
            steps=STEPS,
            interventions=probes("interventions"),
            execute=forking(leg),
            say=lambda _: None,
        )
    )


def faults(found: Experiment) -> set[str]:
    """The slugs of the pages whose signs it shows."""
    outcomes = perform(tuple(detectors("readings", "torchtriage.examine.trial.experiment")), found)
    return {each.fault.slug for each in weigh.findings(outcomes, catalog())}


def said(found: Experiment) -> dict[str, Evidence]:
    """What the readings make of it, by detector."""
    outcomes = perform(tuple(detectors("readings", "torchtriage.examine.trial.experiment")), found)
    return {each.detector: each.evidence[0] for each in outcomes if isinstance(each, Observed) and each.evidence}
