"""torchtriage gradcheck: is the gradient of a custom autograd function its derivative."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from torchtriage.interface.cli import options, terminal

EXAMPLES = """\b
torchtriage gradcheck ops.py:Scale
torchtriage gradcheck pkg.ops:Linear --shapes "3,4;5,4;5"
torchtriage gradcheck pkg.ops:Focal --inputs pkg.ops:make_inputs --reference pkg.ops:focal_plain
"""


@click.command(epilog=EXAMPLES)
@click.argument("target", metavar="MODULE:FUNCTION")
@click.option("--inputs", metavar="MODULE:FACTORY", help="A function without arguments that returns the inputs.")
@click.option(
    "--shapes",
    metavar="TEXT",
    help='The inputs in order: "3,4;4,5" (float64), "int<7:5" (below 7), "bool:3,4", "positive:3,4", "unit:3,4", '
    '"const:3,4" (no gradient), "()" (a scalar), "=0.5", "=None".',
)
@click.option(
    "--reference",
    metavar="MODULE:FUNCTION",
    help="The same in operations of torch, or what the gradient is meant to be: values and gradients are compared.",
)
@click.option(
    "--expect",
    type=click.Choice(("straight-through", "reversed", "scaled", "clipped")),
    help="The gradient is not the derivative, on purpose, and this is what it is.",
)
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), default=120.0, show_default=True, metavar="S",
              help="Seconds that one check may take.")  # fmt: skip
@options.form("console", "json", "sarif", "html", "markdown")
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="DIR", help="Write case.json and report.html there, too."
)
@options.persona
@options.exit_zero
@options.color
def command(  # noqa: PLR0913 - one parameter for each option
    target: str,
    *,
    inputs: str | None,
    shapes: str | None,
    reference: str | None,
    expect: str | None,
    timeout: float,
    form: str,
    out: Path | None,
    persona: str,
    exit_zero: bool,
    color: str,
) -> int:
    """Whether the gradient of a custom autograd function is its derivative: an autograd Function, or a function or
    Module that uses one.

    Without --inputs and --shapes, a function make_inputs, inputs or example_inputs beside it is called, else shapes are
    worked out from the signature. It runs in a process of the `python` on PATH, in a scratch folder; your files are
    read only.
    """
    if inputs is not None and shapes is not None:
        raise click.UsageError("--inputs and --shapes exclude each other.")
    if expect is not None and reference is not None:
        raise click.UsageError("--expect and --reference exclude each other: both say what the gradient is to be.")
    from torchtriage.core.fault import Persona
    from torchtriage.examine.trial.gradient import Asked
    from torchtriage.report.choose import chosen
    from torchtriage.report.formats import render
    from torchtriage.report.keep import keep, made
    from torchtriage.triage.trials import gradcheck

    asked = Asked(target, inputs, shapes, reference, expect, timeout)
    case = chosen(gradcheck(asked, say=_saying()), Persona(persona))
    terminal.say(_summary(case.measurements["gradcheck"]))
    terminal.result(render(case, form, terminal.paper(sys.stdout, color)), form)
    if out is not None:
        terminal.say(keep(case, made(out)))
    return options.ending(case, exit_zero)


def _saying() -> Callable[[str], None]:
    """Tells on a terminal which check is running."""
    if not sys.stderr.isatty():
        return lambda _: None
    return lambda check: terminal.say(f"torchtriage: {check}") if check else None


def _summary(measured: dict[str, Any]) -> str:
    """Which inputs were used, and what each check gave, in a line or two."""
    from torchtriage.report.text import line

    by: dict[str, list[str]] = {"right": [], "wrong": [], "unseen": [], "absent": []}
    for each in measured["checks"]:
        named = by[each["state"]]
        if each["check"] not in named:
            named.append(each["check"])
    words = {"right": "right", "wrong": "wrong", "unseen": "not judged", "absent": "not there"}
    told = "; ".join(f"{words[state]}: {', '.join(names)}" for state, names in by.items() if names)
    dtype = measured.get("dtype", "float64")
    return line(f"inputs: {measured.get('inputs', '')} ({measured.get('origin', '')}, {dtype})") + f"\n{line(told)}"
