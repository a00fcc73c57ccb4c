"""What an agent is given: the same words in every arm. Only the context around them differs."""

from __future__ import annotations

from msgspec import Struct

from torchtriage_evals.pressure import pressed
from torchtriage_evals.scenario import FIELDS, SPECIALISTS, Pressure, Scenario

FILE = "program.py"
_ROUTE = f"""\
End with one line that says who has to work on this, in which order:
ROUTE: name, name (of {", ".join(SPECIALISTS)})
or, if one question has to be answered first, ROUTE: question
or, if it belongs elsewhere, ROUTE: elsewhere field (of {", ".join(FIELDS)})"""
_PROGRAM = f"""\
If the program is sound, change nothing and end with the line VERDICT: sound
If it is not, give the whole mended {FILE} in one fenced block, or a unified diff in a block marked diff, and end with
the line VERDICT: faulty"""


class Given(Struct, frozen=True):
    """A file that the query is about: its name and its text."""

    name: str
    text: str


def prompt(scenario: Scenario, pressure: Pressure | None, given: Given | None) -> str:
    """The message of the user."""
    parts = [pressed(scenario.query, pressure)]
    if given:
        fence = "`" * (3 + given.text.count("```"))
        parts.append(f"The file {given.name}:\n\n{fence}\n{given.text.rstrip()}\n{fence}")
    return "\n\n".join([*parts, *_asked(scenario)])


def _asked(scenario: Scenario) -> list[str]:
    asked = []
    if scenario.route or scenario.question or scenario.refer_to:
        asked.append(_ROUTE)
    if scenario.program:
        asked.append(_PROGRAM)
    if scenario.labels:
        asked.append(f"End with one line CAUSE: label (of {', '.join(scenario.labels)})")
    return asked
