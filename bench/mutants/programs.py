"""The programs that are broken: their files, how they are started, and which of their lines is the figure."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from mutants.catalogue import digest
from mutants.source import Project

FOLDER = Path(__file__).parent / "programs"
FRAMEWORKS = ("lightning", "transformers", "accelerate")


@dataclass(frozen=True)
class Program:
    """One folder with a program.toml; see README.md for its fields."""

    name: str
    folder: Path
    title: str
    domain: str
    figure: str
    better: str
    steps: int
    command: tuple[str, ...]
    resume: tuple[str, ...] = ()  # arguments that take up the run in {out}; none where it cannot

    @classmethod
    def read(cls, folder: Path) -> Program:
        """Raises KeyError for a program.toml that lacks a field, OSError where there is none."""
        row = tomllib.loads((folder / "program.toml").read_text(encoding="utf-8"))
        if row["better"] not in ("lower", "higher"):
            raise ValueError(f"{folder.name}: better is {row['better']!r}, not lower or higher")
        resume = row.get("resume", ["--resume"] if _can_resume(folder) else [])
        figure, better, steps = row["figure"], row["better"], row["steps"]
        command, about = tuple(row["command"]), (row["title"], row["domain"])
        return cls(folder.name, folder, *about, figure, better, steps, command, tuple(resume))

    @cached_property
    def project(self) -> Project:
        return Project.of(self.name, self.texts)

    @cached_property
    def texts(self) -> dict[str, str]:
        """All files of the program by their path below its folder, program.toml aside."""
        found = (path for path in sorted(self.folder.rglob("*")) if path.is_file() and "__pycache__" not in path.parts)
        return {path.relative_to(self.folder).as_posix(): path.read_text(encoding="utf-8") for path in found
                if path.name != "program.toml"}  # fmt: skip

    @property
    def frameworks(self) -> tuple[str, ...]:
        """What it imports beside torch, which takes seconds."""
        pattern = r"^\s*(?:import|from) ({})\b"
        whole = "\n".join(self.texts.values())
        return tuple(each for each in FRAMEWORKS if re.search(pattern.format(each), whole, re.MULTILINE))

    def arguments(self, seed: int, out: str, *more: str) -> list[str]:
        words = (*self.command, *more)
        return [word.replace("{seed}", str(seed)).replace("{out}", out) for word in words]

    def value(self, output: str) -> float:
        """The figure in what a run has printed; NaN where it printed none."""
        found = re.findall(self.figure, output)
        try:
            return float(found[-1]) if found else math.nan
        except ValueError:
            return math.nan

    def loss(self, output: str) -> float:
        """The figure, turned so that lower is better."""
        return self.value(output) if self.better == "lower" else -self.value(output)

    def key(self, texts: dict[str, str], torch: str) -> str:
        """The hash of a mutant: its files, how they are run and judged, and the torch that runs them."""
        how = json.dumps([self.command, self.figure, self.better, self.steps, self.resume])
        return digest(how, torch, *(part for file in sorted(texts) for part in (file, texts[file])))[:24]


def _can_resume(folder: Path) -> bool:
    """Whether a switch --resume is among what the program declares."""
    switch = re.compile(r"""["']--resume["'],\s*action="store_true"|^\s+resume: bool = False""", re.MULTILINE)
    return any(switch.search(path.read_text(encoding="utf-8")) for path in folder.rglob("*.py"))


def read_all(public: Path | None = None) -> list[Program]:
    """This repository's programs, or those of a folder elsewhere."""
    return list(_read(sorted(path.parent for path in (public or FOLDER).glob("*/program.toml"))))


def _read(folders: Iterable[Path]) -> Iterator[Program]:
    yield from map(Program.read, folders)


def write(texts: dict[str, str], folder: Path) -> None:
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
