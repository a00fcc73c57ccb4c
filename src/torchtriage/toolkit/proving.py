"""The proof of a resume in a test: a function is stopped, resumed, and compared with itself uninterrupted."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchtriage.core.case import Case

PathOf = str | PathLike[str]


class ResumeDiffers(AssertionError):
    """What was not restored, in the sentences of the case. case: all of it, to be saved or rendered."""

    def __init__(self, case: Case) -> None:
        facts = [item.fact for finding in case.findings for item in finding.evidence]
        super().__init__("\n".join(dict.fromkeys(facts)))
        self.case = case


def prove_resume(
    train: Callable[[str], object],
    folder: PathOf | None = None,
    *,
    stop: int | None = None,
    until: int | None = None,
    timeout: float = 600.0,
) -> Case:
    """Proves that TRAIN resumes as if it had never been stopped; returns the case, or raises ResumeDiffers.

    train(folder) trains from what it finds in its folder, or from the beginning, and saves there. It is called three
    times, each in a fork of this process and in a working folder of its own: stopped after STOP steps of its optimizer
    (None: soon after its first checkpoint), as a preempted job is; again in the folder that it left; and uninterrupted
    in a new one. A fork begins with what this process has in memory, so the three begin alike, closures and lambdas
    will do, and nothing that TRAIN changes reaches this process. torch computes on one thread there. UNTIL: steps after
    which all is over; TIMEOUT: seconds of each call. FOLDER: where the three work, else a temporary one that goes.

    Raises TriageError where nothing can be compared: TRAIN fails, saves nothing before the stop, never resumes, or this
    process has used a CUDA device, which its forks could not.
    """
    import torch

    from torchtriage.examine.trial.leg.execute import Leg
    from torchtriage.examine.trial.leg.fork import forking
    from torchtriage.examine.trial.resume.conduct import Wanted, conduct
    from torchtriage.triage.trials import resumed

    def run(leg: Leg) -> Any:
        return train(str(leg.mirror.work))

    given = tempfile.TemporaryDirectory(prefix="tt-prove-") if folder is None else nullcontext(str(folder))
    torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))])  # imports what each fork would import by itself
    with given as place:
        home = Path(place).absolute()
        empty = home / "empty"
        empty.mkdir(parents=True, exist_ok=True)
        name = getattr(train, "__name__", type(train).__name__)
        wanted = Wanted((name,), home, stop, "", until, timeout, keep=folder is not None, source=empty)
        case = resumed(conduct(wanted, forking(run)))
    if case.findings:
        raise ResumeDiffers(case)
    return case
