"""torchtriage explain: the page behind a name."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from torchtriage.core.plain import written
from torchtriage.interface.cli import options, terminal

if TYPE_CHECKING:
    from torchtriage.catalog.load import Catalog
    from torchtriage.report.page import Topic


@click.command()
@click.argument("name")
@options.form("console", "json")
@options.color
def command(name: str, form: str, color: str) -> None:
    """Shows the page of a fault, a specialist, a symptom or a verdict."""
    from torchtriage.catalog.load import catalog
    from torchtriage.report import page

    known = catalog()
    topic = _topic(name, known)
    if form == "json":
        terminal.result(written(page.as_dict(topic, known)), form)
    else:
        terminal.result(page.render(topic, known, terminal.paper(sys.stdout, color)))


def _topic(name: str, known: Catalog) -> Topic:
    """A fault before a verdict of the same name; raises TriageError with the nearest of all names."""
    from torchtriage.triage import explain

    rooms = {room.specialist: room for room in known.rooms}
    if name in known.faults:
        return explain(name)
    topics: dict[str, Topic] = {**known.verdicts, **known.symptoms, **rooms}
    if name not in topics:
        raise options.unknown(name, {*topics, *known.faults}, "torchtriage explain")
    return topics[name]
