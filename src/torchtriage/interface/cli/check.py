"""torchtriage check: faults in source code."""

from __future__ import annotations

import sys

import click

from torchtriage.interface.cli import options, terminal

_FORMS = {"full": "console"}


@click.command()
@click.argument("paths", nargs=-1, required=True)
@options.form("full", "concise", "json", "sarif", "github")
@click.option("--select", multiple=True, callback=options.names, help="Only these faults or specialists.")
@click.option("--ignore", multiple=True, callback=options.names, help="Not these faults or specialists.")
@options.persona
@options.exit_zero
@options.color
def command(  # noqa: PLR0913, PLR0917 - one parameter for each option that the interface promises
    paths: tuple[str, ...],
    form: str,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    persona: str,
    exit_zero: bool,
    color: str,
) -> int:
    """Looks for faults in the Python files under PATHS, without running them."""
    from torchtriage.core.fault import Persona
    from torchtriage.report import check, formats
    from torchtriage.report.choose import chosen
    from torchtriage.triage import check as checked

    case = chosen(checked(paths), Persona(persona), select, ignore)
    if form == "json":
        terminal.result(check.render(case), form)
    else:
        form = _FORMS.get(form, form)
        terminal.result(formats.render(case, form, terminal.paper(sys.stdout, color)), form)
    terminal.say(check.summary(case, whole=form in ("concise", "github")))
    return options.ending(case, exit_zero)
