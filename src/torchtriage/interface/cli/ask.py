"""torchtriage ask: where a query leads."""

from __future__ import annotations

import sys

import click

from torchtriage.core.plain import written
from torchtriage.interface.cli import options, terminal


@click.command()
@click.argument("text", required=False)
@options.form("console", "json")
@options.color
@click.option(
    "--batch", is_flag=True, help='Read JSON lines {"id": …, "text": …}; answer one JSON line each, in order.'
)
@click.option("--draft", is_flag=True, help="TEXT is an agent's draft answer: show its red flags.")
@click.option(
    "--source",
    "sources",
    multiple=True,
    metavar="PATH",
    help="A file or folder of the job's Python (repeatable): names what a message only numbers. Read, never run.",
)
def command(text: str | None, form: str, color: str, batch: bool, draft: bool, sources: tuple[str, ...]) -> int:
    """Where to look first, for a query, error message, traceback or log TEXT (- or none: stdin).

    A line of --batch that cannot be read is answered with its "error"; the exit code is 2 when none could be read.
    """
    if batch and (text or draft):
        raise click.UsageError("--batch reads its texts from stdin and takes neither TEXT nor --draft.")
    if sources and (batch or draft):
        raise click.UsageError("--source goes with one TEXT, not with --batch or --draft.")
    if batch:
        from torchtriage.interface.cli.batch import answer

        return answer(sys.stdin.buffer)
    words = _words(text)
    paper = terminal.paper(sys.stdout, color)
    if draft:
        from torchtriage.report import draft as flags
        from torchtriage.routing.draft import review

        raised = review(words)
        terminal.result(flags.as_json(raised) if form == "json" else flags.render(raised, paper), form)
        return 0
    from torchtriage.report import route
    from torchtriage.triage import heard

    query, leads = heard(words, sources)
    if form == "json":
        terminal.result(written(route.as_dict(query, leads)), form)
    else:
        terminal.result(route.render(query, leads, paper))
    return 0


def _words(text: str | None) -> str:
    """TEXT, or what stands on stdin; bytes that are no text are marked as such."""
    if text is None and sys.stdin.isatty():
        raise click.UsageError("Give TEXT, or - to read stdin.")
    if text is None or text == "-":
        return sys.stdin.buffer.read().decode("utf-8", "replace")
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
