"""torchtriage compare: whether a remedy has helped."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from torchtriage.interface.cli import options, terminal

if TYPE_CHECKING:
    from torchtriage.diagnose.compare import Comparison


@click.command()
@click.argument("before", metavar="BEFORE")
@click.argument("after", metavar="AFTER")
@options.form("console", "json", "html", "markdown")
@options.persona
@options.exit_zero
@options.color
def command(before: str, after: str, form: str, persona: str, exit_zero: bool, color: str) -> int:
    """What became of each finding: gone, smaller, same, larger, new; and how much faster a step is.

    BEFORE and AFTER are each a case.json, the folder of a run, or what `read` takes: traces, snapshots, logs, curves,
    checkpoints. Of traces the phases of a step and the kernels that changed most are told, too, of two checkpoints how
    the keys of the one become those of the other. A finding counts as gone only where its detector has looked again.
    Ends with 0 when nothing above info is found after the change, 1 when something is, 3 when that cannot be told.
    """
    from torchtriage.core.fault import Persona
    from torchtriage.report.choose import chosen
    from torchtriage.report.formats import compared
    from torchtriage.triage import compare, sides

    told = compare(*(chosen(case, Persona(persona)) for case in sides(before, after)))
    terminal.result(compared(told, form, terminal.paper(sys.stdout, color)), form)
    return 0 if exit_zero else _ending(told)


def _ending(told: Comparison) -> int:
    from torchtriage.core.errors import NOTHING_EXAMINED
    from torchtriage.core.fault import Severity
    from torchtriage.diagnose.compare import Fate

    if told.remaining:
        return int(any(each.after and each.after.fault.severity is not Severity.INFO for each in told.outcomes))
    return 0 if told.looked and not told.of(Fate.UNSEEN) else NOTHING_EXAMINED
