"""What a run was run with, and what came of it: report.json, and how it is written and read."""

from __future__ import annotations

import platform
from importlib.metadata import version
from pathlib import Path

import msgspec
from msgspec import Struct

import torchtriage
import torchtriage_evals
from torchtriage import TriageError
from torchtriage_evals.models import simulated
from torchtriage_evals.pack import digest
from torchtriage_evals.run import Wanted
from torchtriage_evals.source import Source
from torchtriage_evals.summary import Comparison, Results
from torchtriage_evals.trial import Arm


class About(Struct, frozen=True, kw_only=True):
    """What the results hold for. skill, scenarios_hash: hashes. simulated: a script answered, or judged."""

    simulated: bool
    date: str
    model: str
    judge: str | None
    verb: str
    epochs: int
    scenarios: int
    families: int
    skill: str
    scenarios_hash: str
    cost_limit: float | None
    versions: dict[str, str]


class Report(Struct, frozen=True, kw_only=True):
    """A whole run. The date stands in `about` alone: equal trials give equal bytes of `results`."""

    schema: int = 1
    about: About
    results: Results

    @property
    def headline(self) -> Comparison | None:
        """The comparison that a run is made for: GREEN with RED, calm, or else its first."""
        found = (c for c in self.results.comparisons if (c.before, c.after) == (Arm.RED.value, Arm.GREEN.value))
        return next(found, next(iter(self.results.comparisons), None))


def about(wanted: Wanted, source: Source, files: dict[str, str], *, verb: str, date: str) -> About:
    ours = {"torchtriage": torchtriage.__version__, "torchtriage-evals": torchtriage_evals.__version__}
    return About(
        simulated=simulated(wanted.model, wanted.judge),
        date=date,
        model=wanted.model,
        judge=wanted.judge,
        verb=verb,
        epochs=wanted.epochs,
        scenarios=len(source.scenarios),
        families=len({one.family for one in source.scenarios}),
        skill=digest(files),
        scenarios_hash=source.digest,
        cost_limit=wanted.cost_limit,
        versions=ours | {"inspect-ai": version("inspect-ai"), "python": platform.python_version()},
    )


def write(report: Report, folder: Path) -> None:
    """report.json and report.html."""
    from torchtriage_evals.page import render

    text = msgspec.json.format(msgspec.json.encode(report, order="sorted")).decode()
    (folder / "report.json").write_text(f"{text}\n", encoding="utf-8")
    (folder / "report.html").write_text(render(report), encoding="utf-8")


def read(path: Path) -> Report:
    """The report at PATH; raises TriageError where there is none."""
    do = "Name the report.json that a run has written."
    try:
        return msgspec.json.decode(path.read_bytes(), type=Report)
    except OSError as error:
        raise TriageError(f"cannot be read: {error.strerror}", str(path), do) from error
    except msgspec.MsgspecError as error:
        raise TriageError(f"no report: {error}", str(path), do) from error
