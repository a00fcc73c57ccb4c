"""Reads cases.toml: a training with a fault, a remedy of it, and the verdict that this deserves.

program: a folder of programs/, or mutant: PROGRAM/OPERATOR of bench/mutants; change: [file, old, new], in this order,
makes the case of it. The remedy is the edit that `check` proposes for fault or, of a decoy, patch: replacements again.
Each old text occurs once. verdict: helps, no difference or harms, with one sentence why.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import msgspec
from mutants.catalogue import Mutant, mutants
from mutants.programs import read_all

from torchtriage.examine.trial.experiment.remedies import Remedy, Verdict
from torchtriage.triage import check
from torchtriage.triage.remedies import program, proposals

HERE = Path(__file__).parent

Change = tuple[str, str, str]


class Case(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A row of cases.toml."""

    name: str
    fault: str
    verdict: Verdict
    why: str
    program: str = ""
    mutant: str = ""
    change: tuple[Change, ...] = ()
    patch: tuple[Change, ...] = ()

    @property
    def files(self) -> dict[str, str]:
        """The texts of the training, by their paths. Raises ValueError where an old text is not there once."""
        return changed(_mutated(self.mutant)[0] if self.mutant else _texts(self.program), self.change)

    @property
    def command(self) -> tuple[str, ...]:
        return _mutated(self.mutant)[1] if self.mutant else ("train.py",)

    def remedy(self) -> Remedy:
        """Of the training, which lies in the working folder.

        Raises ValueError where `check` does not propose exactly one edit for the fault.
        """
        edits = [each for each in proposals(check(program(self.command))) if each.slug == self.fault]
        if len(edits) != 1:
            raise ValueError(f"{self.name}: check proposes {len(edits)} edits for {self.fault}")
        if not self.patch:
            return edits[0]
        before = self.files
        after = changed(before, self.patch)
        files = {path: text.encode() for path, text in after.items() if text != before[path]}
        return replace(edits[0], files=files)


def changed(texts: Mapping[str, str], changes: Iterable[Change]) -> dict[str, str]:
    found = dict(texts)
    for path, old, new in changes:
        if (count := found[path].count(old)) != 1:
            raise ValueError(f"{old!r} is {count} times in {path}, not once")
        found[path] = found[path].replace(old, new)
    return found


def read() -> tuple[Case, ...]:
    rows = tomllib.loads((HERE / "cases.toml").read_text(encoding="utf-8"))
    return msgspec.convert(rows["case"], tuple[Case, ...])


def _texts(name: str) -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in sorted((HERE / "programs" / name).glob("*.py"))}


@cache
def _mutated(name: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """The files of an open mutant, and what runs them."""
    programs = {each.name: each for each in read_all()}
    found = next(each for each in _every_mutant() if each.name == name)
    return found.texts, tuple(programs[found.program].arguments(0, "out"))


def _every_mutant() -> Iterator[Mutant]:
    for own in mutants([each.project for each in read_all()]).values():
        yield from (each for each in own if not each.is_aside)
