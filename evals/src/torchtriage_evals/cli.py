"""torchtriage-eval: one verb for each arm, and three that compare. Help and mistakes never wait for Inspect."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar, get_args

import click

from torchtriage import TriageError
from torchtriage_evals import __version__
from torchtriage_evals.scenario import PRESSURES, Kind
from torchtriage_evals.trial import Arm

F = TypeVar("F", bound=Callable[..., Any])
ARMS = tuple(arm.value for arm in Arm)
COMPARED = ("red", "placebo", "green")
NOTHING = 3

_OPTIONS = (
    click.option(
        "--model", required=True, metavar="MODEL", help="Any of Inspect's, provider/name; or mockllm/perfect."
    ),
    click.option("--judge", metavar="MODEL", help="Judges what no pattern decides; without, that is not scored."),
    click.option("--limit", type=click.IntRange(min=1), help="At most so many scenarios, of all sorts."),
    click.option(
        "--kind", "kinds", multiple=True, type=click.Choice(get_args(Kind)), help="Only this kind (repeatable)."
    ),
    click.option("--epochs", type=click.IntRange(min=1), default=1, show_default=True, help="How often each is asked."),
    click.option("--cost-limit", type=click.FloatRange(min=0, min_open=True), metavar="$", help="Ends the run, whole."),
    click.option("--price", metavar="IN,OUT", help="The model's dollars for a million tokens read and written."),
    click.option("--judge-price", metavar="IN,OUT", help="The judge's."),
    click.option("--base-url", metavar="URL", help="Where the model is served."),
    click.option("--out", type=click.Path(path_type=Path, file_okay=False), metavar="DIR", help="Empty or new."),
    click.option("--date", metavar="YYYY-MM-DD", help="What the report is dated. Default: today."),
    click.option("--json", "as_json", is_flag=True, help="The report as JSON on stdout."),
)


def _options(command: F) -> F:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="torchtriage-eval")
def torchtriage_eval() -> None:
    """Does the skill help an agent, and by how much?

    Writes report.json, report.html, trials.jsonl and Inspect's logs. Exit codes: 0 done, 2 usage, 3 nothing scored,
    130 interrupted (what was scored until then is in the report).
    """


@torchtriage_eval.command()
@_options
def red(**given: Any) -> int:
    """Without any help: what the model knows by itself."""
    return _run("red", (Arm.RED,), None, given)


@torchtriage_eval.command()
@_options
def placebo(**given: Any) -> int:
    """With as many characters about other things as the skill has."""
    return _run("placebo", (Arm.PLACEBO,), None, given)


@torchtriage_eval.command()
@_options
def green(**given: Any) -> int:
    """With the skill in the context."""
    return _run("green", (Arm.GREEN,), None, given)


@torchtriage_eval.command()
@_options
def offered(**given: Any) -> int:
    """With the skill among others: is it opened where it belongs, and nowhere else?"""
    return _run("offered", (Arm.OFFERED,), None, given)


@torchtriage_eval.command()
@_options
def tools(**given: Any) -> int:
    """With torchtriage's MCP server."""
    return _run("tools", (Arm.TOOLS,), None, given)


@torchtriage_eval.command()
@_options
@click.option(
    "--pressure", "wanted", multiple=True, type=click.Choice([*PRESSURES, "all"]), help="Default: one of each."
)
def pressure(wanted: tuple[str, ...], **given: Any) -> int:
    """RED and GREEN, calm and pressed, on the same scenarios."""
    return _run("pressure", (Arm.RED, Arm.GREEN), wanted, given)


@torchtriage_eval.command()
@_options
@click.option("--arm", "arms", multiple=True, type=click.Choice(ARMS), default=COMPARED, show_default=True)
def compare(arms: tuple[str, ...], **given: Any) -> int:
    """Several arms on the same scenarios, and their differences."""
    return _run("compare", tuple(arm for arm in Arm if arm.value in arms), None, given)


@torchtriage_eval.command()
@click.argument("report", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--page", type=click.Path(path_type=Path, dir_okay=False), default=Path("docs/evaluation.md"))
def publish(report: Path, page: Path) -> int:
    """Adds a finished run to the table of results in PAGE; a simulated or partial one is refused."""
    from torchtriage_evals.publish import add

    click.echo(add(report, page), err=True)
    return 0


def _run(verb: str, arms: tuple[Arm, ...], pressures: tuple[str, ...] | None, given: dict[str, Any]) -> int:
    from torchtriage_evals.verb import carry_out

    return carry_out(verb, arms, pressures, given)


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Runs the verb that ARGS (else the command line) name, and exits with its code."""
    sys.exit(_ended(args))


def _ended(args: Sequence[str] | None) -> int:
    try:
        code = torchtriage_eval.main(args, prog_name="torchtriage-eval", standalone_mode=False)
    except TriageError as error:
        click.echo(f"error: {error.what}\n  where: {error.where}\n  do: {error.do}", err=True)
        return error.code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return 128 + signal.SIGINT
    return code if isinstance(code, int) else 0
