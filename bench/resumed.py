"""The part of bench/trials.py for resume-check: planted omissions and complete jobs, each stopped and resumed."""

from __future__ import annotations

import contextlib
import io
import json
import os
import runpy
import shlex
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corpus import share

from torchtriage.core.errors import TriageError
from torchtriage.examine.trial.leg.execute import Leg
from torchtriage.examine.trial.leg.fork import forking
from torchtriage.examine.trial.resume.conduct import Wanted, conduct
from torchtriage.triage.trials import resumed

CASES = Path(__file__).parents[1] / "tests/cases/trials/resume"


@dataclass(frozen=True)
class Planted:
    """A job, how it is tried, and what was left out ("" where nothing was)."""

    name: str
    script: str
    command: tuple[str, ...]
    options: tuple[str, ...]
    faults: tuple[str, ...]
    component: str


@dataclass(frozen=True)
class Seen:
    """What the trial said: the faults, and the components in its order. error: why it could not be conducted."""

    planted: Planted
    faults: tuple[str, ...] = ()
    components: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    error: str = ""


def marked(folder: Path = CASES) -> Iterator[Planted]:
    """The scripts of FOLDER, whose heads say how they are tried and what is expected."""
    for path in sorted(folder.glob("*.py")):
        text = path.read_text()
        told = dict(line[2:].split(": ", 1) for line in text.splitlines()[:4] if line.startswith("# ") and ": " in line)
        fault, _, component = told.get("expect", "").partition(" ")
        yield Planted(
            path.stem, text, tuple(shlex.split(told["command"])), tuple(shlex.split(told.get("options", ""))),
            (fault,) if fault else (), component,
        )  # fmt: skip


def listed(path: Path) -> Iterator[Planted]:
    """The jobs of a file of which each line is one."""
    for line in path.read_text().splitlines():
        each = json.loads(line) if line.strip() else {}
        if each.get("trial") == "resume":
            yield Planted(
                each["id"], each["script"], tuple(each["command"]), tuple(each.get("options", ())),
                tuple(each["faults"]), each.get("component") or "",
            )  # fmt: skip


def tried(planted: Planted) -> Seen:
    """The job alone in a folder, tried there."""
    with tempfile.TemporaryDirectory(prefix="resume-") as place:
        home = Path(place) / "home"
        home.mkdir()
        (home / "train.py").write_text(planted.script)
        before = Path.cwd()
        os.chdir(home)
        try:
            with contextlib.redirect_stderr(io.StringIO()):
                case = resumed(conduct(_wanted(planted, Path(place) / "out"), forking(_script)))
        except TriageError as error:
            return Seen(planted, error=str(error))
        finally:
            os.chdir(before)
        left = sorted(path.name for path in home.iterdir())
    found = [item for finding in case.findings if finding.fault.slug == "resume-differs" for item in finding.evidence]
    slugs = tuple(sorted({finding.fault.slug for finding in case.findings}))
    named = tuple(item.place.anchor or "" for item in found)
    facts = (*(item.fact for item in found), *(f"inconclusive: {each.why}" for each in case.inconclusive))
    return Seen(planted, slugs, named, facts, "" if left == ["train.py"] else f"it left {left}")


def _script(leg: Leg) -> None:
    """Runs the script of a leg in this very process, a fork; as `python train.py …` would."""
    sys.argv = list(leg.mirror.words(leg.command))
    sys.path[0] = str(Path.cwd())
    runpy.run_path(sys.argv[0], run_name="__main__")


def _wanted(planted: Planted, out: Path) -> Wanted:
    options = iter(planted.options)
    given: dict[str, Any] = {}
    for option in options:
        name, _, value = option.partition("=")
        given[name] = value or next(options)
    after, until = given.get("--stop-after"), given.get("--until")
    return Wanted(
        planted.command, out, int(after) if after else None, given.get("--resume-args", ""),
        int(until) if until else None, 300,
    )  # fmt: skip


def warm() -> None:
    """What every leg would import by itself, imported once: the forks have it."""
    import numpy as np
    import torch

    torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))])
    del np


def main(file: Path | None, show: bool = False) -> None:
    warm()
    rows = []
    for planted in listed(file) if file else marked():
        rows.append(tried(planted))
        if show:
            print(told(rows[-1]), flush=True)
    for line in table(rows):
        print(line)


def told(seen: Seen) -> str:
    right = "right" if is_right(seen) else "WRONG"
    said = f"{right} {seen.planted.name}: {seen.planted.component or 'complete'}"
    said += f" -> {', '.join(seen.components)} {seen.error}"
    return "\n    ".join((said, *(seen.facts if right == "WRONG" else ())))


def is_right(seen: Seen) -> bool:
    """The component is the first that is named; of a complete job, nothing is said."""
    if seen.error:
        return False
    return seen.components[:1] == (seen.planted.component,) if seen.planted.faults else not seen.faults


def table(rows: list[Seen]) -> Iterator[str]:
    planted = [row for row in rows if row.planted.faults]
    complete = [row for row in rows if not row.planted.faults]
    found = [row for row in planted if "resume-differs" in row.faults]
    named = [row for row in planted if row.planted.component in row.components]
    yield f"resume-check: {len(rows)} jobs, {len(planted)} with an omission, {len(complete)} complete"
    yield f"  the omission is found                {share(len(found), len(planted))}"
    yield f"  its component is named first         {share(sum(map(is_right, planted)), len(planted))}"
    yield f"  its component is among those named   {share(len(named), len(planted))}"
    yield f"  false alarms on complete jobs        {share(sum(bool(row.faults) for row in complete), len(complete))}"
    yield f"  could not be tried                   {sum(bool(row.error) for row in rows)}"
