"""The command line: one module for each verb, loaded when it is called. Verbs only; what they do stands in triage."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper
from typing import Any, NoReturn, TextIO

import click

from torchtriage.core.errors import TriageError
from torchtriage.interface.cli.death import Death
from torchtriage.interface.cli.terminal import say, silence, written

VERBS = (
    "ask",
    "check",
    "compare",
    "experiment",
    "explain",
    "gradcheck",
    "mcp",
    "read",
    "report",
    "repro",
    "resume-check",
    "run",
    "skills",
)


class Verbs(click.Group):
    """A group that imports a verb when it is called, and all of them only to list their help."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        if cmd_name not in VERBS:
            return None
        verb: click.Command = import_module(f"{__name__}.{cmd_name.replace('-', '_')}").command
        return verb

    def invoke(self, ctx: click.Context) -> Any:
        """Click would end with 1, which says "something found", when nobody reads stdout any more."""
        try:
            code = super().invoke(ctx)
            written()
        except BrokenPipeError:
            silence(sys.stdout)
            return 128 + 13  # what a shell reports for SIGPIPE, which Windows does not name
        return code


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="torchtriage", prog_name="torchtriage")
def torchtriage() -> None:
    """Triage and diagnosis for PyTorch training: from your words or your job to a verified remedy.

    Exit codes: 0 nothing found, or only findings of severity info; 1 an error or a warning found; 2 usage or
    configuration; 3 nothing could be examined.
    ask and explain end with 0 for any answer; run ends with the code of the job.
    """


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Runs the verb that ARGS (else the command line) name, and exits with its code.

    As a command, it dies of the signal that its job has died of: a parent process, and a shell that runs a script, look
    at that, and not at the code.
    """
    sys.stdout = sys.stdout or _nowhere()  # a closed descriptor leaves None
    sys.stderr = sys.stderr or _nowhere()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a terminal that cannot show a character still gets the rest
            stream.reconfigure(errors="backslashreplace")
    code = _ended(args)
    if args is None and isinstance(code, Death):
        code.follow()
    sys.exit(code)


def _nowhere() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123 - open until the process ends


def _ended(args: Sequence[str] | None) -> int:
    try:
        code = torchtriage.main(args, prog_name="torchtriage", standalone_mode=False)
    except TriageError as error:
        from torchtriage.interface.cli.terminal import problem

        problem(error)
        return error.code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        say("torchtriage: interrupted")  # whatever it had started has ended by now
        return 128 + signal.SIGINT
    return code if isinstance(code, int) else 0
