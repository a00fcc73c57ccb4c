"""Functions that train, experimented on in forks of this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
import torch._dynamo  # the first optimizer of each fork would
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from torchtriage.catalog.load import catalog
from torchtriage.core.evidence import Evidence, Observed
from torchtriage.diagnose import weigh
from torchtriage.examine.detector import perform
from torchtriage.examine.trial.experiment.arms import Arm
from torchtriage.examine.trial.experiment.conduct import Experiment, experiment
from torchtriage.examine.trial.experiment.wanted import BRANCHED, Wanted
from torchtriage.examine.trial.leg.execute import Leg
from torchtriage.examine.trial.leg.fork import forking
from torchtriage.triage import detectors, interventions, probes

STEPS = 32


CLASSES = 4


def task(seed: int = 0, rows: int = 1024) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs, and the class that a line through each of them decides."""
    draw = torch.Generator().manual_seed(seed)
    inputs = torch.randn(rows, 8, generator=draw)
    return inputs, inputs[:, :CLASSES].argmax(1)


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, CLASSES))


def train(
    model: nn.Module | None = None,
    rate: float = 0.01,
    data: tuple[torch.Tensor, torch.Tensor] | None = None,
    *,
    epochs: int = 4,
    workers: int = 0,
    kind: Callable[..., torch.optim.Optimizer] = torch.optim.Adam,
) -> None:
    model = model or network()
    optimizer = kind(model.parameters(), lr=rate)
    loader = DataLoader(TensorDataset(*(data or task())), batch_size=32, shuffle=True, num_workers=workers)
    for _ in range(epochs):
        for inputs, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), labels).backward()
            optimizer.step()


def tried(
    folder: Path, job: Callable[[], object], recipes: frozenset[str] = BRANCHED, arms: tuple[Arm, ...] = ()
) -> Experiment:
    """What becomes of JOB, which trains, with trials of STEPS."""

    def leg(_leg: Leg) -> None:
        job()

    return experiment(
        Wanted(
            ("a function",),
            folder / "run",
            recipes,
            steps=STEPS,
            interventions=probes("interventions"),
            arms=arms,
            starting=frozenset(name for name, is_from_start in interventions().items() if is_from_start),
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
