"""Remedies of a program's findings, tried: each edit beside the command as it is, in mirrors of its folder."""

from __future__ import annotations

import ast
import os
import time
from collections.abc import Iterator, Sequence
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from torchtriage.core.errors import NOTHING_EXAMINED, TriageError
from torchtriage.triage import check, concluded, detectors, mend

if TYPE_CHECKING:
    from torchtriage.core.case import Case
    from torchtriage.core.finding import Finding
    from torchtriage.examine.run.record import RunRecord
    from torchtriage.examine.trial.experiment.remedies import Judgement, Remedy
    from torchtriage.examine.trial.experiment.wanted import Wanted


class Tried(Struct, frozen=True):
    """The case of a program, with what was tried; and each remedy with what that says of it."""

    case: Case
    judgements: tuple[tuple[Remedy, Judgement], ...]


def tried(wanted: Wanted) -> Tried:
    """Tries each edit that the findings of the program of WANTED's command propose, the safe ones and the others.

    Raises TriageError where the command names no Python file of the working folder, and as a leg does.
    """
    from torchtriage.examine.trial.experiment import remedies as trial
    from torchtriage.examine.trial.experiment.legs import Legs
    from torchtriage.examine.trial.experiment.questions import Answers

    case = check(program(wanted.command))
    proposed = tuple(proposals(case))
    answers = Answers()
    legs = Legs(wanted, time.monotonic() + wanted.budget, {each.arm: each.files for each in proposed}, faults)
    if proposed:
        legs.carry_out(trial.remedies(answers, proposed))
    judgements = tuple((each, trial.judge(answers.courses, each.arm)) for each in proposed)
    told = {
        "steps": wanted.steps,
        "legs": legs.number,
        "seconds": round(legs.seconds, 3),
        "tried": [_row(remedy, judgement) for remedy, judgement in judgements],
    }
    return Tried(replace(case, measurements={**case.measurements, "remedies": told}), judgements)


def _row(remedy: Remedy, judgement: Judgement) -> dict[str, object]:
    return {
        "fault": remedy.slug,
        "remedy": remedy.title,
        "path": remedy.path,
        "line": remedy.line,
        "verdict": str(judgement.verdict),
        "facts": list(judgement.facts),
        "worse": list(judgement.worse),
    }


def proposals(case: Case) -> Iterator[Remedy]:
    """The remedies of CASE's findings that are edits of files in the working folder; of alike findings one."""
    from torchtriage.examine.trial.experiment.remedies import Remedy

    seen: set[str] = set()
    for finding in case.findings:
        place = finding.evidence[0].place
        if finding.fingerprint in seen or not any(item.edits for item in finding.evidence):
            continue
        seen.add(finding.fingerprint)
        files = _edited(case, finding)
        if files and place.path is not None:
            named = {edit.remedy for item in finding.evidence for edit in item.edits}
            title = next(each.title for each in finding.remedies if each.id in named)
            yield Remedy(finding.fingerprint, finding.fault.slug, title, place.path, place.line or 0, files)


def _edited(case: Case, finding: Finding) -> dict[str, bytes]:
    """The files that the edits of FINDING change, by their paths in the working folder."""

    def is_same(other: Finding) -> bool:
        return other.fingerprint == finding.fingerprint

    own = replace(case, findings=tuple(filter(is_same, case.findings)))
    changed = mend(own, is_same, lambda path: Path(path).read_bytes(), unsafe=True)
    here = Path.cwd()
    inside = {each: Path(os.path.abspath(each.path)) for each in changed if each.after != each.before}  # noqa: PTH100
    return {str(path.relative_to(here)): each.after for each, path in inside.items() if path.is_relative_to(here)}


def faults(record: RunRecord) -> tuple[frozenset[str], frozenset[str]]:
    """The slugs of what a job that was watched shows, but for what is said of its times; and of those that cost time or
    memory.
    """
    from torchtriage.core.fault import FaultClass
    from torchtriage.examine.detector import perform

    untimed = tuple(each for each in detectors("readings") if not each.timed)
    found = concluded(None, perform(untimed, record)) if record.ranks else None
    shown = [each.fault for each in found.findings] if found is not None else []
    return frozenset(each.slug for each in shown), frozenset(
        each.slug for each in shown if each.kind is FaultClass.WASTE
    )


def program(command: Sequence[str]) -> list[Path]:
    """The Python file that COMMAND runs, and those that it imports from the working folder or from beside it.

    Raises TriageError where it runs none.
    """
    here = Path.cwd()
    script = next((Path(word) for word in command if word.endswith(".py") and Path(word).is_file()), None)
    if script is None or not script.resolve().is_relative_to(here.resolve()):
        raise TriageError(
            "no word of the command is a Python file of the working folder, whose findings could be mended",
            " ".join(command),
            "Give it as `-- train.py`, from the folder that it lies in.",
            NOTHING_EXAMINED,
        )
    found, left = {script: None}, [script]
    while left:
        for path in _imported(left.pop(), [str(script.parent), str(here)]):
            relative = Path(os.path.relpath(path))
            if relative not in found and ".." not in relative.parts:
                found[relative] = None
                left.append(relative)
    return list(found)


def _imported(file: Path, folders: list[str]) -> Iterator[Path]:
    """The files of the modules that FILE imports, which are found in FOLDERS."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return  # said by `check`
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _files(alias.name.split("."), folders)
        elif isinstance(node, ast.ImportFrom):
            start = folders if not node.level else [str(file.absolute().parents[node.level - 1])]
            words = node.module.split(".") if node.module else []
            for alias in node.names:
                yield from _files([*words, alias.name], start)


def _files(words: Sequence[str], folders: list[str]) -> Iterator[Path]:
    """The files of a dotted name, packages included; the last of WORDS may be no module."""
    within: list[str] | None = folders
    for word in words:
        spec = PathFinder.find_spec(word, within) if within else None
        if spec is None:
            return
        if spec.origin is not None and spec.origin.endswith(".py"):
            yield Path(spec.origin)
        within = list(spec.submodule_search_locations) if spec.submodule_search_locations else None
