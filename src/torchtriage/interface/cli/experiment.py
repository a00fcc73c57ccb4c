"""torchtriage experiment: what becomes of the training when one thing is changed."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from torchtriage.interface.cli import options, rehearsal, terminal

if TYPE_CHECKING:
    from torchtriage.core.case import Case
    from torchtriage.core.finding import Finding
    from torchtriage.examine.trial.experiment.wanted import Wanted
    from torchtriage.simulation.cards import Card

EXAMPLES = """\b
torchtriage experiment -- train.py
torchtriage experiment --recipe stability --steps 200 --budget 20m -- train.py
torchtriage experiment --recipe speed -- train.py
torchtriage experiment --recipe memory --accelerator sim --card 24GiB -- train.py
torchtriage experiment --try learning-rate=0.3 --try workers=8 -- train.py
torchtriage experiment --fix -- train.py
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
    type=click.Choice(("sanity", "stability", "speed", "memory")),
    multiple=True,
    help="What is tried: whether inputs, targets and batches matter; learning rates; what makes a step shorter; what "
    "lowers the peak of the device's memory. Default: the first two.",
)
@click.option(
    "--try",
    "changes",
    type=Change(),
    multiple=True,
    metavar="NAME[=VALUE]",
    help="Try this beside the unchanged job, instead of all that a recipe tries: learning-rate=0.3, dropout=0, …; with "
    "--recipe speed the steps are timed, with memory the peak is read.",
)
@click.option("--fix", is_flag=True, help="Try the edits that findings of `check` propose, each in a mirror.")
@click.option("--apply", is_flag=True, help="With --fix: show and write those that help.")
@click.option(
    "--steps", type=click.IntRange(min=16), default=64, show_default=True, metavar="N", help="Steps of each trial."
)
@click.option(
    "--budget", type=Duration(), default="5m", show_default=True, metavar="TIME", help="For all: 90s, 5m, 2h."
)
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Default: torchtriage-runs/<time>.")
@rehearsal.accelerator
@rehearsal.card
@options.form("console", "json", "sarif", "html", "markdown")
@options.persona
@options.exit_zero
@options.color
@click.argument("words", metavar="-- CMD…", nargs=-1, required=True, type=click.UNPROCESSED)
def command(  # noqa: PLR0913 - one parameter for each option
    recipes: tuple[str, ...],
    changes: tuple[tuple[str, float], ...],
    *,
    fix: bool,
    apply: bool,
    steps: int,
    budget: float,
    out: Path | None,
    accelerator: str | None,
    card: Card | None,
    form: str,
    persona: str,
    exit_zero: bool,
    color: str,
    words: tuple[str, ...],
) -> int:
    """Changes one thing at a time inside the unchanged job, and tells which change matters.

    The job runs in a mirror of the working folder; your files stay as they are. Before its first step it is forked for
    each trial: all begin with the same weights and see the same batches. What a finding says is the difference of such
    pairs, with its 95 % interval. Where steps are timed, and for jobs on devices or of several ranks, the command runs
    again for each trial.
    """
    if fix and (recipes or changes):
        raise click.UsageError("--fix tries what the findings propose: it goes with no --recipe and no --try.")
    if apply and not fix:
        raise click.UsageError("--apply goes with --fix.")
    if accelerator and "speed" in recipes:
        raise click.UsageError("--recipe speed measures times, and a simulated device has none of a real one.")
    simulated = rehearsal.simulated(accelerator, card)

    from torchtriage.core.fault import Persona
    from torchtriage.examine.trial.experiment.arms import Arm
    from torchtriage.examine.trial.experiment.wanted import BRANCHED, Wanted
    from torchtriage.report.choose import chosen
    from torchtriage.report.formats import render
    from torchtriage.report.keep import folder, keep
    from torchtriage.triage import interventions, probes
    from torchtriage.triage.trials import experiment

    with folder(out) as place:
        wanted = Wanted(
            words,
            place.absolute(),
            frozenset(recipes or (() if changes else BRANCHED)),
            steps,
            budget,
            probes(),
            probes("interventions"),
            tuple(Arm((each,)) for each in changes),
            frozenset(name for name, is_from_start in interventions().items() if is_from_start),
            simulated,
        )
        found, helpful = _with_remedies(wanted) if fix else (experiment(wanted), frozenset())
    case = chosen(found, Persona(persona))
    terminal.result(render(case, form, terminal.paper(sys.stdout, color)), form)
    terminal.say(keep(case, place))
    if apply:
        _apply(found, helpful, shown=form == "console")
    return options.ending(case, exit_zero)


def _with_remedies(wanted: Wanted) -> tuple[Case, frozenset[str]]:
    """The case in which remedies were tried, and the fingerprints of the findings whose remedies help."""
    from torchtriage.examine.trial.experiment.remedies import Verdict
    from torchtriage.triage.remedies import tried

    found = tried(wanted)
    return found.case, frozenset(each.finding for each, said in found.judgements if said.verdict is Verdict.HELPS)


def _apply(case: Case, helpful: frozenset[str], *, shown: bool) -> None:
    """Writes the edits of the findings that are HELPFUL; SHOWN: on stdout, which a program reads in other forms."""
    from torchtriage.interface.cli.mend import difference, differences, mend

    def is_helpful(finding: Finding) -> bool:
        return finding.fingerprint in helpful

    if not helpful:
        terminal.say("No remedy helps: nothing is written.")
        return
    findings = tuple(filter(is_helpful, case.findings))
    changes = mend(replace(case, findings=findings), is_helpful, b"", unsafe=True)
    if shown:
        differences(changes)
    else:
        terminal.say(difference(changes))
    terminal.say(changes.write())
