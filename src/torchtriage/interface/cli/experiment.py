"""torchtriage experiment: what becomes of the training when one thing is changed."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import click

from torchtriage.interface.cli import options, terminal

EXAMPLES = """\b
torchtriage experiment -- train.py
torchtriage experiment --recipe stability --steps 200 --budget 20m -- train.py
torchtriage experiment --try learning-rate=0.3 --try dropout=0 -- train.py
"""
_TIME = re.compile(r"(\d+(?:\.\d+)?)(s|m|h)?")
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


class Change(click.ParamType[tuple[str, float]]):
    """The name of an intervention with its value, as learning-rate=0.3; 0 where there is none, as dropout."""

    name = "change"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, float]:
        from torchtriage.triage import interventions

        name, _, number = str(value).partition("=")
        if name not in (known := interventions()):
            self.fail(f"there is no change {name!r}: {', '.join(sorted(known))}", param, ctx)
        try:
            return name, float(number or 0)
        except ValueError:
            self.fail(f"{number!r} is no number: write {name}=0.5", param, ctx)


class Duration(click.ParamType[float]):
    """Seconds, from words as 90, 90s, 5m or 2h."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, int | float):
            return float(value)
        found = _TIME.fullmatch(str(value))
        if found is None or not float(found[1]):
            self.fail(f"{value!r} is no time: write 90s, 5m or 2h", param, ctx)
        return float(found[1]) * _UNITS[found[2] or "s"]


@click.command(context_settings={"allow_interspersed_args": False}, epilog=EXAMPLES)
@click.option(
    "--recipe",
    "recipes",
    type=click.Choice(("sanity", "stability")),
    multiple=True,
    help="What is tried: whether inputs, targets and batches matter, or learning rates. Default: both.",
)
@click.option(
    "--try",
    "changes",
    type=Change(),
    multiple=True,
    metavar="NAME[=VALUE]",
    help="Try this beside the unchanged job, instead of a recipe: learning-rate=0.3, weight-decay=0, dropout=0, …",
)
@click.option(
    "--steps", type=click.IntRange(min=16), default=64, show_default=True, metavar="N", help="Steps of each trial."
)
@click.option(
    "--budget", type=Duration(), default="5m", show_default=True, metavar="TIME", help="For all: 90s, 5m, 2h."
)
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Default: torchtriage-runs/<time>.")
@options.form("console", "json", "sarif", "html", "markdown")
@options.persona
@options.exit_zero
@options.color
@click.argument("words", metavar="-- CMD…", nargs=-1, required=True, type=click.UNPROCESSED)
def command(  # noqa: PLR0913 - one parameter for each option
    recipes: tuple[str, ...],
    changes: tuple[tuple[str, float], ...],
    steps: int,
    budget: float,
    out: Path | None,
    *,
    form: str,
    persona: str,
    exit_zero: bool,
    color: str,
    words: tuple[str, ...],
) -> int:
    """Changes one thing at a time inside the unchanged job, and tells which change matters.

    The job runs once, in a mirror of the working folder; your files stay as they are. Before its first step it is
    forked for each trial: all begin with the same weights and see the same batches. What a finding says is the
    difference of such pairs, with its 95 % interval. It needs a job of one process on the CPU.
    """
    from torchtriage.core.fault import Persona
    from torchtriage.examine.trial.experiment.arms import Arm
    from torchtriage.examine.trial.experiment.conduct import RECIPES, Wanted
    from torchtriage.report.choose import chosen
    from torchtriage.report.formats import render
    from torchtriage.report.keep import folder, keep
    from torchtriage.triage import probes
    from torchtriage.triage.trials import experiment

    with folder(out) as place:
        wanted = Wanted(
            words,
            place.absolute(),
            frozenset(recipes or (() if changes else RECIPES)),
            steps,
            budget,
            probes(),
            probes("interventions"),
            tuple(Arm((each,)) for each in changes),
        )
        found = experiment(wanted)
    shutil.rmtree(place / "leg", ignore_errors=True)
    case = chosen(found, Persona(persona))
    terminal.result(render(case, form, terminal.paper(sys.stdout, color)), form)
    terminal.say(keep(case, place))
    return options.ending(case, exit_zero)
