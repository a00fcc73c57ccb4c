"""torchtriage read: what an artefact shows. In this version: the folder of a run."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from torchtriage.interface.cli import options, terminal

if TYPE_CHECKING:
    from torchtriage.core.case import Case


@click.command()
@click.argument("path", type=click.Path(path_type=Path))
@options.form("console", "json", "sarif", "html", "markdown")
@options.persona
@options.exit_zero
@options.color
def command(path: Path, form: str, persona: str, exit_zero: bool, color: str) -> int:
    """Judges the record in PATH, the folder of a `torchtriage run`, with the pages of today."""
    from torchtriage.core.fault import Persona
    from torchtriage.report.choose import chosen
    from torchtriage.report.formats import render
    from torchtriage.triage import judge

    _refuse_other(path)
    case = chosen(judge(path, _begun(path)), Persona(persona))
    terminal.result(render(case, form, terminal.paper(sys.stdout, color)), form)
    return options.ending(case, exit_zero)


def _refuse_other(path: Path) -> None:
    from torchtriage.core.errors import NOTHING_EXAMINED, USAGE, TriageError

    if not path.exists():
        raise TriageError("there is no such file or folder", str(path), "Name the folder of a run.", USAGE)
    records = [*path.glob("rank*.jsonl"), *path.glob("processes.jsonl")] if path.is_dir() else []
    if not records:
        raise TriageError(
            "not the folder of a run",
            str(path),
            "This version reads run folders (those with rank*.jsonl); make one with `torchtriage run -- train.py`.",
            NOTHING_EXAMINED,
        )


def _begun(folder: Path) -> Case:
    """The words with which the run began, heard anew; the commands of a plan are never taken from a file."""
    from torchtriage.core.case import Case
    from torchtriage.core.errors import TriageError
    from torchtriage.triage import begun

    with suppress(TriageError):  # without its case the record is as good
        query = Case.load(folder / "case.json").query
        return begun(query.text) if query is not None else Case()
    return Case()
