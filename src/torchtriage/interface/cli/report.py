"""torchtriage report: a case, rendered again."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from torchtriage.interface.cli import options, terminal


@click.command()
@click.argument("case", type=click.Path(path_type=Path))
@options.form("console", "json", "sarif", "html", "markdown")
@options.color
def command(case: Path, form: str, color: str) -> None:
    """Renders CASE, a case.json or the folder that holds one, to stdout."""
    from torchtriage.report.formats import render
    from torchtriage.report.keep import kept

    terminal.result(render(kept(case), form, terminal.paper(sys.stdout, color)), form)
