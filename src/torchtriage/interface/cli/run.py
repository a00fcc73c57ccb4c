"""torchtriage run: an unchanged job, under probes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from torchtriage.core.errors import TriageError
from torchtriage.interface.cli import options, rehearsal, terminal
from torchtriage.interface.cli.death import Death

if TYPE_CHECKING:
    from torchtriage.core.case import Case
    from torchtriage.simulation.cards import Card

EXAMPLES = """\b
torchtriage run -- train.py --lr 1e-3
torchtriage run -- torchrun --nproc-per-node 2 train.py
torchtriage run --accelerator sim --card H100 -- train.py
torchtriage run --baseline runs/one -- torchrun --nproc-per-node 2 train.py
"""


class Share(click.ParamType[float]):
    """A share of something, as a fraction of 1; written in per cent."""

    name = "percent"

    def convert(self, value: str | float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if not isinstance(value, str):
            return value
        try:
            share = float(value.removesuffix("%")) / 100
        except ValueError:
            self.fail(f"{value!r} is not a percentage, such as 0.5%", param, ctx)
        if not _SMALLEST <= share <= 1:
            self.fail(f"{value} is not between {100 * _SMALLEST:g}% and 100%", param, ctx)
        return share


_SMALLEST = 0.0001
"""Less than what the clock of steps itself takes; who wants nothing of the probes runs without them."""


@click.command(context_settings={"allow_interspersed_args": False}, epilog=EXAMPLES)
@click.option("--symptom", metavar="TEXT", help="What you see, in your words or as a symptom's name: opens the plan.")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Default: torchtriage-runs/<time>.")
@click.option("--steps", type=click.IntRange(min=1), metavar="N", help="Leave the job after N steps; it runs on.")
@click.option(
    "--hang-after",
    type=click.FloatRange(min=0, min_open=True),
    metavar="S",
    help="Without movement for S seconds, tell where each rank stands. Longer than any evaluation or checkpoint.",
)
@click.option("--end-hang", is_flag=True, help="With --hang-after: end a job of which all ranks stand.")
@click.option(
    "--overhead",
    type=Share(),
    metavar="PERCENT",
    help="The share of the job's time that the probes may take after the first steps. Default: 1%.",
)
@click.option(
    "--baseline",
    type=click.Path(path_type=Path),
    metavar="CASE",
    help="The case.json of the same job on one process, or its folder: tells how well the ranks scale.",
)
@rehearsal.accelerator
@rehearsal.card
@options.form("console", "json")
@click.option("--fail-on", type=click.Choice(("error", "warning")), help="End with 1 when that much was found.")
@options.persona
@options.color
@click.argument("words", metavar="-- CMD…", nargs=-1, required=True, type=click.UNPROCESSED)
def command(  # noqa: PLR0913, PLR0917 - one parameter for each option that the interface promises
    symptom: str | None,
    out: Path | None,
    steps: int | None,
    hang_after: float | None,
    end_hang: bool,
    overhead: float | None,
    baseline: Path | None,
    accelerator: str | None,
    card: Card | None,
    form: str,
    fail_on: str | None,
    persona: str,
    color: str,
    words: tuple[str, ...],
) -> int:
    """Runs the job unchanged, tells what it shows, and ends with the job's own code."""
    if end_hang and hang_after is None:
        raise click.UsageError("--end-hang needs --hang-after")
    simulated = rehearsal.simulated(accelerator, card)
    from torchtriage.core.case import Case
    from torchtriage.core.fault import Persona
    from torchtriage.examine.run.launcher.launch import Launch
    from torchtriage.examine.run.launcher.sharing import joins, member
    from torchtriage.report.choose import chosen
    from torchtriage.report.formats import render
    from torchtriage.report.keep import folder, keep
    from torchtriage.report.text import line
    from torchtriage.triage import begun, run

    asked = begun(symptom) if symptom else Case()
    who = member(words)
    with folder(out, name=who.name, ours=lambda place: joins(place, who)) as place:
        wanted = Launch(
            words,
            place,
            steps,
            form == "json",
            (),
            who,
            hang_after,
            end_hang,
            baseline,
            overhead,
            simulated,
        )
        judged, ended = run(wanted, asked, lambda case: _stands(chosen(case, Persona(persona)), color))
    case = chosen(judged, Persona(persona))
    kept = keep(case, place) if ended.leads else ""
    with _owed(sys.stderr):
        if kept:
            terminal.say(render(case, "console", terminal.paper(sys.stderr, color)))
            terminal.say(kept)
        else:
            terminal.say(f"the records of this launcher are in {line(str(place))}: the one with rank 0 judges them")
    if form == "json":
        with _owed(sys.stdout):
            terminal.result(render(case, form), form)
            terminal.written()
    if ended.signal is not None and not end_hang:
        return Death(ended.code)
    return ended.code or options.failing(case, fail_on)


def _stands(case: Case, color: str) -> None:
    """The verdict at once, while the job still stands."""
    from torchtriage.report.formats import render

    with _owed(sys.stderr):
        terminal.say("torchtriage: all ranks stand still; so far:")
        terminal.say(render(case, "console", terminal.paper(sys.stderr, color)))


@contextmanager
def _owed(stream: TextIO) -> Iterator[None]:
    """A reader that has gone or a full disk under STREAM loses the words; the job's code is still owed."""
    try:
        yield
    except (OSError, TriageError):
        terminal.silence(stream)
