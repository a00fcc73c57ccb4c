"""What `torchtriage check` and `torchtriage run` say of mutants that hurt and of healthy programs.

A mutant is found when a finding above info has a slug that its operator accepts, and found at its place when one of the
evidences of such a finding is in a file and on a line of the fault, or names a module that this line assigns. Anything
else above info is false, unless it may be said beside the fault.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
from processes import ended

from mutants.catalogue import Mutant
from mutants.measure import texts_of
from mutants.programs import Program, write

LIMIT = 900.0  # seconds of the clock, on a machine that is shared
CHECK, RUN, EXPERIMENT = "check", "run", "experiment"
SPEED = "speed"  # what a mutant costs, and what an experiment is then asked for: its user sees that it is slow
SLOW = 2  # the seed from which healthy programs are taken to be slow by their users


@dataclass(frozen=True)
class Said:
    """One finding above info: its slug, and its places as [file, first line, last line, module]."""

    slug: str
    places: list[tuple[str, int, int, str]]


@dataclass(frozen=True)
class Heard:
    """All that was said of one mutant or healthy run, by the TOOLS; code and seconds are those of `run`."""

    name: str
    key: str
    check: list[Said] = field(default_factory=list)
    run: list[Said] = field(default_factory=list)
    experiment: list[Said] = field(default_factory=list)
    verdict: str = ""
    code: int | None = 0
    seconds: float = 0.0
    tools: list[str] = field(default_factory=list)

    def said(self, tool: str) -> list[Said]:
        return {CHECK: self.check, RUN: self.run, EXPERIMENT: self.experiment}.get(tool, [*self.check, *self.run])


@dataclass(frozen=True)
class Case:
    """What is to be judged: the files of a mutant or of a healthy program, and the seed of its run.

    recipe: of the experiment, if its user would ask for one.
    """

    name: str
    key: str
    program: Program
    texts: dict[str, str]
    seed: int
    recipe: str = ""


def of_mutant(program: Program, mutant: Mutant, harm: str, torch: str) -> Case:
    texts = texts_of(program, mutant)
    return Case(mutant.name, program.key(texts, torch), program, texts, 0, SPEED if harm == SPEED else "")


def of_healthy(program: Program, seed: int, torch: str) -> Case:
    """Each seed but the first few is that of a user to whom the program seems slow."""
    recipe = SPEED if seed >= SLOW else ""
    return Case(
        f"{program.name}/healthy/{seed}", program.key(program.texts, torch), program, program.texts, seed, recipe
    )


def judge(cases: Iterable[tuple[Case, Heard]], tools: frozenset[str], at_once: int = 2) -> Iterator[Heard]:
    """In the order of CASES, AT_ONCE of them at a time; each with what is known of it."""
    with ThreadPoolExecutor(at_once) as pool:
        yield from pool.map(lambda each: hear(each[0], each[1], tools), cases)


def hear(case: Case, known: Heard, tools: frozenset[str]) -> Heard:
    """What all TOOLS say: those that are KNOWN are not asked again."""
    found = _heard(case, missing) if (missing := tools - {*known.tools}) else known
    taken = {each: getattr(found, each) for each in (CHECK, RUN, EXPERIMENT) if each in missing}
    if RUN in missing:
        taken |= {"verdict": found.verdict, "code": found.code, "seconds": found.seconds}
    return replace(known, **taken, tools=sorted({*known.tools, *tools}))


def _heard(case: Case, tools: frozenset[str]) -> Heard:
    with TemporaryDirectory(prefix="judged-") as name:
        folder = Path(name)
        program = folder / "program"
        write(case.texts, program)
        checked = _checked(program) if CHECK in tools else []
        tried = _experimented(case, folder, program) if EXPERIMENT in tools else []
        if RUN not in tools:
            return Heard(case.name, case.key, checked, experiment=tried)
        arguments = case.program.arguments(case.seed, "out")
        command = [sys.executable, "-m", "torchtriage", "run", "--color", "never", "--out", str(folder / "case"), "--"]
        code, seconds = ended([*command, sys.executable, *arguments], program, LIMIT)
        output = (program / "output.txt").read_text(encoding="utf-8", errors="replace")
        left = folder / "case" / "case.json"
        found = _findings(json.loads(left.read_text(encoding="utf-8")), program) if left.exists() else []
        return Heard(case.name, case.key, checked, found, tried, _verdict(output), code, round(seconds, 1))


def _experimented(case: Case, folder: Path, program: Path) -> list[Said]:
    """What `torchtriage experiment` says within its usual budget."""
    arguments = case.program.arguments(case.seed, "out")
    command = [sys.executable, "-m", "torchtriage", "experiment", "--out", str(folder / "experiment")]
    recipe = ["--recipe", case.recipe] if case.recipe else []
    ended([*command, *recipe, "--", sys.executable, *arguments], program, LIMIT)
    (program / "output.txt").unlink(missing_ok=True)
    left = folder / "experiment" / "case.json"
    return _findings(json.loads(left.read_text(encoding="utf-8")), program) if left.exists() else []


def _checked(program: Path) -> list[Said]:
    command = [sys.executable, "-m", "torchtriage", "check", "--json", "--exit-zero", "--no-cache", "."]
    ended(command, program, LIMIT)
    output = program / "output.txt"
    text = output.read_text(encoding="utf-8", errors="replace")
    output.unlink()
    return _findings(json.loads(text[text.index("{") : text.rindex("}") + 1]), program)


def _findings(case: dict[str, Any], program: Path) -> list[Said]:
    """Those above info, with the places of their evidence below the folder of the program."""
    loud = (each for each in case["findings"] if each["severity"] != "info")
    return [Said(each["fault"], [_place(item["place"], program) for item in each["evidence"]]) for each in loud]


def _place(place: dict[str, Any], program: Path) -> tuple[str, int, int, str]:
    path = Path(place["path"] or "")
    name = path.resolve().relative_to(program.resolve()) if path.is_absolute() and _is_below(path, program) else path
    line = place["line"] or 0
    return name.as_posix(), line, place["end_line"] or line, place["module"] or ""


def _is_below(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())


def _verdict(output: str) -> str:
    """The first line under Verdict in what `run` printed."""
    found = re.search(r"^Verdict\s*\n(.+)$", output, re.MULTILINE)
    return " ".join(found[1].split()) if found else ""


def found(heard: Heard, mutant: Mutant, tool: str) -> bool:
    return any(said.slug in mutant.operator.accepts for said in heard.said(tool))


def placed(heard: Heard, mutant: Mutant, tool: str) -> bool:
    right = (said for said in heard.said(tool) if said.slug in mutant.operator.accepts)
    return any(_is_exact(place, mutant) for said in right for place in said.places)


def false(heard: Heard, mutant: Mutant, tool: str) -> list[str]:
    """The slugs that are neither the fault nor may be said beside it."""
    fine = mutant.operator.accepts | mutant.operator.beside
    return sorted({said.slug for said in heard.said(tool)} - fine)


def _is_exact(place: tuple[str, int, int, str], mutant: Mutant) -> bool:
    file, first, last, module = place
    lines = mutant.lines.get(file, [])
    if first and any(first <= line <= last for line in lines):
        return True
    return bool(module) and not {*module.split(".")}.isdisjoint(_assigned(mutant))


def _assigned(mutant: Mutant) -> Iterator[str]:
    """The attributes that the lines of the fault assign: the names of modules."""
    for file, lines in mutant.lines.items():
        rows = mutant.texts[file].splitlines()
        for line in lines if len(lines) <= 8 else ():
            yield from re.findall(r"self\.(\w+) = ", rows[line - 1] if line <= len(rows) else "")


def written(heard: Heard) -> str:
    return json.dumps(asdict(heard))


def read(path: Path) -> dict[str, Heard]:
    """The judgements of a file that `judge --out` has written, by name; the last of each."""
    rows = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    both = {"tools": [CHECK, RUN]}  # of files from before there were experiments
    return {row["name"]: msgspec.convert(both | row, Heard) for row in rows}
