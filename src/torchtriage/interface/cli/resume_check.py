"""torchtriage resume-check: does a resumed job go on as if it had never stopped."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from torchtriage.interface.cli import options, terminal

EXAMPLES = """\b
torchtriage resume-check --resume-args "--resume ckpt.pt" -- train.py --epochs 4
torchtriage resume-check --stop-after 100 --until 300 -- torchrun --nproc-per-node 2 train.py
torchtriage resume-check --resume-args "--resume {leg}/out/last.pt" -- train.py --out {leg}/out
"""


@click.command("resume-check", context_settings={"allow_interspersed_args": False}, epilog=EXAMPLES)
@click.option(
    "--stop-after",
    type=click.IntRange(min=1),
    metavar="N",
    help="Stop the job after its Nth optimizer step. Default: soon after its first checkpoint.",
)
@click.option("--resume-args", default="", metavar="TEXT", help="What the resumed job has behind its command.")
@click.option("--until", type=click.IntRange(min=1), metavar="STEP", help="End all legs after that step.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=3600.0,
    show_default=True,
    metavar="S",
    help="End a leg after S seconds.",
)
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Default: torchtriage-runs/<time>.")
@click.option("--keep", is_flag=True, help="Leave the folders of the legs there.")
@options.form("console", "json", "sarif", "html", "markdown")
@options.persona
@options.exit_zero
@options.color
@click.argument("words", metavar="-- CMD…", nargs=-1, required=True, type=click.UNPROCESSED)
def command(  # noqa: PLR0913 - one parameter for each option
    stop_after: int | None,
    resume_args: str,
    until: int | None,
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
    """Runs the job three times: stopped, resumed in the folder that it left, and uninterrupted. Compares the whole
    state at the first resumed step, and how it goes on; names what was not restored.

    The job runs in copies of the working folder, {leg} in its words is the copy. Your files stay as they are.
    """
    if until is not None and stop_after is not None and until <= stop_after:
        raise click.UsageError("--until must lie after --stop-after")
    from torchtriage.core.fault import Persona
    from torchtriage.examine.trial.resume.conduct import Wanted
    from torchtriage.report.choose import chosen
    from torchtriage.report.formats import render
    from torchtriage.report.keep import folder
    from torchtriage.report.keep import keep as kept
    from torchtriage.triage.trials import resume_check

    with folder(out) as place:
        wanted = Wanted(words, place.absolute(), stop_after, resume_args, until, timeout, keep)
        case = chosen(resume_check(wanted), Persona(persona))
        told = kept(case, place)
    terminal.result(render(case, form, terminal.paper(sys.stdout, color)), form)
    terminal.say(told)
    return options.ending(case, exit_zero)
