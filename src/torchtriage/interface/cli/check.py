"""torchtriage check: faults in source code."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from torchtriage.core.fault import Persona
from torchtriage.interface.cli import options, terminal

if TYPE_CHECKING:
    from packaging.version import Version

    from torchtriage.core.case import Case
    from torchtriage.core.finding import Finding
    from torchtriage.interface.cli.settings import Project

_FORMS = {"full": "console"}


@dataclass(frozen=True)
class Asked:
    """The options, by their names on the command line."""

    paths: tuple[str, ...]
    form: str
    select: tuple[str, ...]
    ignore: tuple[str, ...]
    persona: str | None
    fix: bool
    unsafe_fixes: bool
    diff: bool
    baseline: str | None
    write_baseline: str | None
    target_torch: str | None
    jobs: int
    cache: bool
    fail_on: str
    exit_zero: bool
    color: str


@click.command()
@click.argument("paths", nargs=-1, required=True)
@options.form("full", "concise", "json", "sarif", "github")
@click.option("--select", multiple=True, callback=options.names, help="Only these faults or specialists.")
@click.option("--ignore", multiple=True, callback=options.names, help="Not these faults or specialists.")
@click.option("--persona", type=click.Choice(("default", "pedantic")), help="pedantic also shows advice.")
@click.option("--fix", is_flag=True, help="Write the safe edits into the files.")
@click.option("--unsafe-fixes", is_flag=True, help="With --fix or --diff: also the edits that want a look.")
@click.option("--diff", is_flag=True, help="Show what --fix would write, and write nothing.")
@click.option("--baseline", metavar="FILE", help="Show only findings that FILE does not know.")
@click.option("--write-baseline", metavar="FILE", help="Write the findings into FILE, and end with 0.")
@click.option("--target-torch", metavar="VERSION", help="The oldest torch to be supported; else as required.")
@click.option("-j", "--jobs", default=1, type=click.IntRange(min=0), help="Processes; 0: one for each core.")
@click.option("--cache/--no-cache", default=True, help="Remember what was seen in a file.")
@options.fail_on
@options.exit_zero
@options.color
def command(**given: Any) -> int:
    """Looks for faults in the Python files and notebooks under PATHS (- is stdin), without running them.

    A project's settings are read from [tool.torchtriage] in its pyproject.toml.

    Exit codes: 0 nothing found, or only findings of severity info; 1 an error or a warning (--fail-on); 2 usage or
    configuration; 3 nothing could be examined.
    """
    asked = Asked(**given)
    if asked.unsafe_fixes and not (asked.fix or asked.diff):
        raise click.UsageError("--unsafe-fixes goes with --fix or --diff.")
    if sum((asked.fix, asked.diff, asked.write_baseline is not None)) > 1:
        raise click.UsageError("--fix, --diff and --write-baseline exclude each other.")
    if asked.diff and asked.form != "full":
        raise click.UsageError("--diff prints a difference: it has no other --format.")
    if asked.fix and "-" in asked.paths:
        raise click.UsageError("--fix writes files; for stdin use --diff.")
    return _checked(asked)


def _checked(asked: Asked) -> int:
    from torchtriage.catalog.load import catalog
    from torchtriage.examine.source.files import Means
    from torchtriage.interface.cli.settings import project
    from torchtriage.triage import check, memory

    known = catalog()
    home = project(asked.paths, {*known.faults, *known.specialists})
    stdin = _stdin() if "-" in asked.paths else b""
    jobs = asked.jobs or os.cpu_count() or 1
    means = Means(stdin, memory() if asked.cache else None, jobs, home.passes_over)
    wanted = _wanted(asked, home)
    case, hidden = _beyond(_only(check(asked.paths, means=means), wanted), asked, home)
    if asked.write_baseline is not None:
        return _baseline(case, Path(asked.write_baseline)) if case.observed else options.ending(case, asked.exit_zero)
    if asked.diff or asked.fix:
        from torchtriage.interface.cli.mend import differences, mend

        changes = mend(case, wanted, stdin, asked.unsafe_fixes)
        if asked.diff:
            differs = differences(changes)
            return int(differs and not asked.exit_zero) if case.observed else options.ending(case, asked.exit_zero)
        written = changes.write()
        case, hidden = _beyond(_only(check(asked.paths, means=means), wanted), asked, home)
        terminal.say(written)
    return _told(case, asked, hidden)


def _stdin() -> bytes:
    from torchtriage.core.errors import TriageError

    if sys.stdin is None:  # closed by who started this: check - <&-
        raise TriageError("there is no stdin to be read", "-", "Pipe a file into it, or name one.")
    return sys.stdin.buffer.read()


def _told(case: Case, asked: Asked, hidden: int) -> int:
    from torchtriage.report import check, formats

    if asked.form == "json":
        terminal.result(check.render(case), asked.form)
    else:
        form = _FORMS.get(asked.form, asked.form)
        terminal.result(formats.render(case, form, terminal.paper(sys.stdout, asked.color)), form)
    terminal.say(check.summary(case, whole=asked.form in ("concise", "github"), hidden=hidden))
    return options.ending(case, asked.exit_zero, asked.fail_on)


def _only(case: Case, wanted: Callable[[Finding], bool]) -> Case:
    from msgspec.structs import replace

    return replace(case, findings=tuple(filter(wanted, case.findings)))


def _wanted(asked: Asked, home: Project) -> Callable[[Finding], bool]:
    """Whether a finding is shown: by the command line, else by the project's settings, and by the torch it is for."""
    from torchtriage.interface.cli.target import Targets
    from torchtriage.report.choose import wanted

    settings, targets = home.settings, Targets(asked.target_torch, home)
    select = asked.select or settings.select
    ignore = (*asked.ignore, *settings.ignore)

    def is_wanted(finding: Finding) -> bool:
        path = finding.evidence[0].place.path
        if finding.fault.torch and not _fits(finding.fault.torch, targets.of(path)):
            return False
        own = home.choices(path)
        persona = asked.persona or next((each.persona for each in own if each.persona), None) or settings.persona
        chosen = asked.select or next((each.select for each in own if each.select), ()) or select
        passed_by = (*ignore, *(name for each in own for name in each.ignore))
        return wanted(Persona(persona or "default"), chosen, passed_by)(finding)

    return is_wanted


def _fits(wanted: str, version: Version | None) -> bool:
    """Whether a fault of the torch versions WANTED exists in VERSION, or VERSION is unknown."""
    if version is None:
        return True
    from packaging.specifiers import SpecifierSet

    return SpecifierSet(wanted).contains(version, prereleases=True)


def _beyond(case: Case, asked: Asked, home: Project) -> tuple[Case, int]:
    """CASE without what the baseline knows, and how many findings that hides."""
    named = asked.baseline
    if named is None and home.settings.baseline is not None:
        named = str(_own(home.folder, home.settings.baseline))
    if named is None or asked.write_baseline is not None:
        return case, 0
    from torchtriage.report.baseline import beyond, read

    left = beyond(case, read(Path(named)), Path(named).parent)
    return left, len(case.findings) - len(left.findings)


def _own(folder: Path, baseline: str) -> Path:
    """The baseline that a project's settings name; raises TriageError where it lies outside of the project."""
    from torchtriage.core.errors import TriageError

    file = folder / baseline
    if not file.resolve().is_relative_to(folder.resolve()):
        do = "Name a file of the project in [tool.torchtriage], or any file with --baseline."
        raise TriageError("the settings name a baseline outside of the project", baseline, do)
    return file


def _baseline(case: Case, file: Path) -> int:
    from torchtriage.core.errors import TriageError
    from torchtriage.report.baseline import render
    from torchtriage.report.check import counted

    try:
        file.write_text(render(case, file.parent), encoding="utf-8")
    except OSError as error:
        raise TriageError(f"cannot be written: {error.strerror}", str(file), "Name a file that can be.") from error
    terminal.say(f"{counted(case)} written to {file}.")
    return 0
