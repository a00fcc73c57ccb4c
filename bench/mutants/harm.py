"""Whether a mutant hurts: limits that come from the healthy program, bad runs beyond them, and Fisher's exact test.

DeepCrime calls a mutant killed when the figures of its runs differ from those of the healthy program (a generalised
linear model, p < 0.05) and the effect is not small. That is not monotone: one run that is worse by far widens the
spread, and the mutant is alive again. Here each run is bad or it is not, and the mutant hurts when bad runs are more
frequent than the healthy program's by Fisher's one-sided exact test, p < 0.05. A run that becomes worse stays bad, and
one more bad run only lowers p.

Five healthy runs, of seeds that are used for nothing else, set the limits; ten others are the control. A run is bad
when

- it ends with another code than 0, or runs for ten times as long,
- its figure is not a number, or beyond the worst of the five by more than their spread and by more than a tenth of the
  way from the untrained program to the trained one; where a fault falsifies the report, also by so much better,
- it takes more CPU time than 1.25 times the slowest of the five and of a healthy run of its seed made next to it,
- its memory peaks above 1.25 times the highest of the five and 16 MiB more, less what the imports take,
- where a fault is of checkpoints: the run that is stopped halfway and resumed fails, or its figure is further from that
  of the run that was not stopped than twice what it is for the healthy program and 2 % of the way of the training.

Five seeds are run at most. A mutant is left as soon as its remaining seeds cannot change the answer, which leaves the
answer the one of five seeds (curtailed sampling), so that its level is that of one test.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

LEVEL = 0.05
SEEDS = tuple(range(5))
CONTROL = tuple(range(10))
CALIBRATION = tuple(range(10, 15))
UNTRAINED = tuple(range(3))
SHARE, RESUMED, SLOWER, MORE, FLOOR = 0.1, 0.02, 1.25, 1.25, 16.0


@dataclass(frozen=True)
class Measured:
    """One run: exit code, figure (lower is better), CPU seconds, peak MiB, and what a resumed run ended with."""

    seed: int
    code: int
    figure: float
    seconds: float
    memory: float
    beside: float = 0.0  # the CPU seconds of a healthy run of the same seed, made next to one that seemed slow
    resumed: float | None = None  # the figure of a run that was stopped halfway and resumed
    resume_code: int | None = None


@dataclass(frozen=True)
class Limits:
    """Beyond which a run is bad."""

    worst: float
    best: float
    seconds: float
    memory: float
    resumed: float = math.inf

    @classmethod
    def of(cls, healthy: Sequence[Measured], untrained: Iterable[Measured]) -> Limits:
        """From the healthy runs that are for calibration, and those without any learning."""
        figures = [run.figure for run in healthy]
        start = [run.figure for run in untrained if math.isfinite(run.figure)]
        way = abs(median(start) - median(figures)) if start else 0.0
        margin = max(max(figures) - min(figures), SHARE * way, 1e-9)
        memory = max(run.memory for run in healthy)
        apart = [abs(run.resumed - run.figure) for run in healthy if run.resumed is not None]
        resumed = 2 * max(apart) + RESUMED * way + 1e-9 if apart else math.inf
        return cls(max(figures) + margin, min(figures) - margin, SLOWER * max(run.seconds for run in healthy),
                   max(MORE * memory, memory + FLOOR), resumed)  # fmt: skip


def bad(run: Measured, limits: Limits, shows: frozenset[str]) -> list[str]:
    """How a run is bad, among what the operator SHOWS: error, figure, report, speed, memory, resume."""
    found = {
        "error": run.code != 0,
        "figure": run.code == 0 and not run.figure <= limits.worst,
        "report": run.code == 0 and not limits.best <= run.figure <= limits.worst,
        "speed": run.code == 0 and run.seconds > max(limits.seconds, SLOWER * run.beside),
        "memory": run.code == 0 and run.memory > limits.memory,
        "resume": run.code == 0 and _is_resumed_badly(run, limits),
    }
    return [
        name for name in ("error", "resume", "figure", "report", "speed", "memory") if name in shows and found[name]
    ]


def _is_resumed_badly(run: Measured, limits: Limits) -> bool:
    if run.resume_code is None or run.resumed is None:
        return False
    return run.resume_code != 0 or not abs(run.resumed - run.figure) <= limits.resumed


def fisher(bad: int, of: int, control_bad: int, control_of: int) -> float:
    """The probability of at least BAD bad runs of OF, given all runs and all bad ones (one-sided, exact)."""
    total, wrong = of + control_of, bad + control_bad
    ways = range(bad, min(of, wrong) + 1)
    return sum(math.comb(wrong, k) * math.comb(total - wrong, of - k) for k in ways) / math.comb(total, of)


def hurts(bad: int, of: int, control_bad: int, control_of: int) -> bool:
    return fisher(bad, of, control_bad, control_of) < LEVEL


def is_decided(bad: int, done: int, control_bad: int, control_of: int) -> bool:
    """Whether the seeds that are left could no longer change the answer of all five."""
    left = len(SEEDS) - done
    return hurts(bad, len(SEEDS), control_bad, control_of) or not hurts(bad + left, len(SEEDS), control_bad, control_of)


def verdict(bad: int, done: int, control_bad: int, control_of: int) -> bool | None:
    """Whether the mutant hurts; None while that is open."""
    if not is_decided(bad, done, control_bad, control_of):
        return None
    return hurts(bad, len(SEEDS), control_bad, control_of)
