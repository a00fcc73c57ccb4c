"""Where the words go: results to stdout, everything else to stderr, in colours where they are wanted."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from torchtriage.core.errors import TriageError
from torchtriage.report.paper import Paper
from torchtriage.report.text import line


def paper(stream: TextIO, color: str) -> Paper:
    """What STREAM is: 80 columns without colours, unless it is a terminal or COLOR or the environment say otherwise."""
    shown = stream.isatty()
    width = os.get_terminal_size(stream.fileno()).columns if shown else 80
    return Paper(min(width, 110) or 80, _colored(color, shown))


def _colored(color: str, shown: bool) -> bool:
    """NO_COLOR, FORCE_COLOR and CLICOLOR_FORCE count where no option was given."""
    if color != "auto":
        return color == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if any(os.environ.get(name, "0") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    return shown and os.environ.get("TERM") != "dumb"


def silence(stream: TextIO) -> None:
    """Lets what is left in STREAM go nowhere: what could not be written must not fail again at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())


def result(text: str, form: str = "console") -> None:
    """Writes TEXT to stdout; anything but console text as UTF-8, whatever the terminal speaks."""
    with _room():
        _written(text, form)


def written() -> None:
    """Hands on what is still buffered for stdout."""
    with _room():
        sys.stdout.flush()


@contextmanager
def _room() -> Iterator[None]:
    """Raises TriageError where stdout takes no more, but for a pipe whose reader has gone."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        silence(sys.stdout)
        raise TriageError(
            f"the answer cannot be written: {error.strerror}", "stdout", "Send it to a place with room for it."
        ) from error


def _written(text: str, form: str) -> None:
    out = getattr(sys.stdout, "buffer", None)
    if form == "console" or out is None:
        sys.stdout.write(text)
    else:
        sys.stdout.flush()
        out.write(text.encode("utf-8", "replace"))
        out.flush()


def say(text: str) -> None:
    """One line, or a text that ends in one, to stderr."""
    sys.stderr.write(text if text.endswith("\n") else f"{text}\n")


def problem(error: TriageError) -> None:
    """What is wrong, where, and what to do about it."""
    say(f"torchtriage: {line(error.what)}\n  where: {line(error.where)}\n  do:    {line(error.do)}")
