"""torchtriage read: what a job left behind shows, of whatever kinds it is."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from torchtriage.interface.cli import options, terminal


@click.command()
@click.argument("paths", metavar="PATH…", nargs=-1, required=True)
@click.option(
    "--engine",
    type=click.Choice(("auto", "one", "local", "ray")),
    default="auto",
    show_default=True,
    help="Where the traces of many ranks are summed up: one process, the cores of this machine (auto: where large "
    "files are worth it), or Ray. The answer is the same.",
)
@click.option("--address", metavar="HOST:PORT", help="An existing Ray cluster; without it, a Ray of this machine.")
@click.option("--verify", is_flag=True, help="Read all numbers of checkpoints: checksums, NaN and Inf.")
@options.form("console", "json", "sarif", "html", "markdown")
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="DIR", help="Write case.json and report.html there, too."
)
@options.persona
@options.exit_zero
@options.color
def command(  # noqa: PLR0913 - one parameter for each option
    paths: tuple[str, ...],
    engine: str,
    address: str | None,
    *,
    verify: bool,
    form: str,
    out: Path | None,
    persona: str,
    exit_zero: bool,
    color: str,
) -> int:
    """What a job left behind shows, as one case: profiler traces, memory snapshots, Flight Recorder dumps, logs,
    TensorBoard event files, Lightning's metrics.csv, checkpoints (torch.save, safetensors, DCP, Accelerate, Trainer,
    DeepSpeed; of two, what differs between their keys), and folders of a `torchtriage run`, with the pages of today.

    PATH: files, folders of ranks, zip archives, or URLs such as s3://bucket/run (with fsspec's package for them).
    What a file is is told from its content; gzip is unpacked on the way. Nothing in a file is ever run.
    """
    from torchtriage.core.fault import Persona
    from torchtriage.report.choose import chosen
    from torchtriage.report.formats import render
    from torchtriage.report.keep import keep, made
    from torchtriage.triage import read

    case = chosen(read(paths, engine=engine, address=address, verify=verify), Persona(persona))
    terminal.result(render(case, form, terminal.paper(sys.stdout, color)), form)
    if out is not None:
        terminal.say(keep(case, made(out)))
    return options.ending(case, exit_zero)
