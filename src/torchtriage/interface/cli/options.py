"""The options that several verbs share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from torchtriage.core.case import Case

_FAILING = ("error", "warning", "info")  # the loudest first
F = TypeVar("F", bound=Callable[..., Any])

color = click.option(
    "--color",
    type=click.Choice(("auto", "always", "never")),
    default="auto",
    show_default=True,
    help="Colours; NO_COLOR and FORCE_COLOR are honoured.",
)
persona = click.option(
    "--persona",
    type=click.Choice(("default", "pedantic")),
    default="default",
    show_default=True,
    help="pedantic also shows advice.",
)
exit_zero = click.option("--exit-zero", is_flag=True, help="End with 0 even when something was found.")
fail_on = click.option(
    "--fail-on",
    type=click.Choice(_FAILING),
    default="warning",
    show_default=True,
    help="End with 1 for findings of this severity or a higher one.",
)


def form(*names: str) -> Callable[[F], F]:
    """--format, one of NAMES (the first is the default), with --json as its short form."""

    def add(verb: F) -> F:
        short = click.option("--json", "form", flag_value="json", help="Short for --format json.")
        return click.option("--format", "form", type=click.Choice(names), default=names[0], show_default=True)(
            short(verb)
        )

    return add


def names(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:  # noqa: ARG001
    """Slugs of faults and names of specialists, repeated or joined by commas; raises TriageError for any other."""
    given = tuple(name.strip() for item in value for name in item.split(",") if name.strip())
    if given:
        from torchtriage.catalog.load import catalog, unknown

        known = {*catalog().faults, *catalog().specialists}
        for name in given:
            if name not in known:
                raise unknown(name, known, f"--{param.name}")
    return given


def ending(case: Case, exit_zero: bool, fail_on: str = "warning") -> int:
    """The exit code of a verb that looked: 0 nothing found, or nothing as loud as FAIL_ON; 1 something found; 3 nothing
    could be examined.

    A job that ended badly is something found, also where no page describes its message.
    """
    from torchtriage.core.errors import NOTHING_EXAMINED

    if case.findings or case.measurements.get("end"):
        return int(not exit_zero and bool(failing(case, fail_on) or case.measurements.get("end")))
    return 0 if case.observed else NOTHING_EXAMINED


def failing(case: Case, fail_on: str | None) -> int:
    """1 when CASE holds a finding as loud as FAIL_ON, else 0."""
    loud = _FAILING[: _FAILING.index(fail_on) + 1] if fail_on else ()
    return int(any(finding.fault.severity.value in loud for finding in case.findings))
