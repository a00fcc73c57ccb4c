"""torchtriage compare: whether a remedy has helped."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from torchtriage.interface.cli import options, terminal

if TYPE_CHECKING:
    from torchtriage.diagnose.compare import Comparison


@click.command()
@click.argument("before", metavar="CASE_BEFORE", type=click.Path(path_type=Path))
@click.argument("after", metavar="CASE_AFTER", type=click.Path(path_type=Path))
@options.form("console", "json", "html", "markdown")
@options.persona
@options.exit_zero
@options.color
def command(before: Path, after: Path, form: str, persona: str, exit_zero: bool, color: str) -> int:
    """What became of each finding: gone, smaller, same, larger, new; and how much faster a step is.

    Each CASE is a case.json or the folder of a run. A finding counts as gone only where its detector has looked again.
    Ends with 0 when nothing is found after the change, 1 when something is, 3 when that cannot be told.
    """
    from torchtriage.core.fault import Persona
    from torchtriage.report.choose import chosen
    from torchtriage.report.formats import compared
    from torchtriage.report.keep import kept
    from torchtriage.triage import compare

    told = compare(*(chosen(kept(path), Persona(persona)) for path in (before, after)))
    terminal.result(compared(told, form, terminal.paper(sys.stdout, color)), form)
    return 0 if exit_zero else _ending(told)


def _ending(told: Comparison) -> int:
    from torchtriage.core.errors import NOTHING_EXAMINED
    from torchtriage.diagnose.compare import Fate

    if told.remaining:
        return 1
    return 0 if told.looked and not told.of(Fate.UNSEEN) else NOTHING_EXAMINED
