"""torchtriage explain: the page behind a name."""

from __future__ import annotations

import sys

import click

from torchtriage.core.plain import written
from torchtriage.interface.cli import options, terminal


@click.command()
@click.argument("name")
@options.form("console", "json")
@options.color
def command(name: str, form: str, color: str) -> None:
    """Shows the page of a fault, a specialist, a symptom or a verdict."""
    from torchtriage.catalog.load import catalog
    from torchtriage.report import page
    from torchtriage.triage import explain

    known = catalog()
    topic = explain(name)
    if form == "json":
        terminal.result(written(page.as_dict(topic, known)), form)
    else:
        terminal.result(page.render(topic, known, terminal.paper(sys.stdout, color)))
