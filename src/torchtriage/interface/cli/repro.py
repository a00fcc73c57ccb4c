"""torchtriage repro: does the job train alike when it is run twice."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from torchtriage.core.errors import TriageError
from torchtriage.interface.cli import options, terminal

if TYPE_CHECKING:
    from torchtriage.core.case import Case

RECORDS = "records"  # the folder in which the legs' records lie until the end
EXAMPLES = """\b
torchtriage repro -- train.py --epochs 1
torchtriage repro --steps 200 -- torchrun --nproc-per-node 2 train.py
"""


@click.command(context_settings={"allow_interspersed_args": False}, epilog=EXAMPLES)
@click.option("--steps", type=click.IntRange(min=1), metavar="N", help="Compare the first N updates; a leg then ends.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=1800.0,
    show_default=True,
    metavar="S",
    help="Seconds that one leg may take; what it has done by then is compared.",
)
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Default: torchtriage-runs/<time>.")
@click.option("--keep", is_flag=True, help="Keep the records of the legs in DIR.")
@options.form("console", "json", "sarif", "html", "markdown")
@options.persona
@options.exit_zero
@options.color
@click.argument("words", metavar="-- CMD…", nargs=-1, required=True, type=click.UNPROCESSED)
def command(  # noqa: PLR0913 - one parameter for each option
    steps: int | None,
    timeout: float,
    out: Path | None,
    *,
    keep: bool,
    form: str,
    persona: str,
    exit_zero: bool,
    color: str,
    words: tuple[str, ...],
) -> int:
    """Runs the job twice and tells whether it trains alike: the first step, phase and module that differ, and why.

    Each leg runs in a mirror of the working folder; your files stay as they are. Where the two differ, further legs
    look at the operations of that step, and hold one suspect after the other still.
    """
    from torchtriage.core.fault import Persona
    from torchtriage.examine.trial.repeat.pairs import Runner
    from torchtriage.report.choose import chosen
    from torchtriage.report.formats import render
    from torchtriage.report.keep import folder
    from torchtriage.report.keep import keep as kept
    from torchtriage.triage.trials import repro

    with folder(out) as place:
        if (place / RECORDS).exists():  # it is removed in the end, unless --keep
            raise TriageError(
                "there is a folder of this name already", str(place / RECORDS), "Name another with --out."
            )
        found = repro(Runner(words, place.absolute(), steps, timeout))
    if not keep:
        shutil.rmtree(place / RECORDS, ignore_errors=True)
    case = chosen(found, Persona(persona))
    terminal.say(_summary(found))
    terminal.result(render(case, form, terminal.paper(sys.stdout, color)), form)
    terminal.say(kept(case, place))
    return options.ending(case, exit_zero)


def _summary(case: Case) -> str:
    """How much was compared."""
    told = case.measurements["repro"]
    ranks = f" on each of {told['ranks']} ranks" if told["ranks"] > 1 else ""
    legs = " and ".join(f"{count:,}" for count in told["steps_of_legs"])
    return (
        f"torchtriage: {told['steps']:,} steps compared{ranks} (the legs took {legs}), {told['marks']:,} fingerprints"
    )
