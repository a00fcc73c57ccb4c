"""The options of verbs that let a script for a GPU run on a simulated device."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from torchtriage.simulation.cards import Card


class CardName(click.ParamType["Card"]):
    """A card by its name or its memory."""

    name = "card"

    def convert(self, value: str | Card, param: click.Parameter | None, ctx: click.Context | None) -> Card:
        from torchtriage.simulation.cards import parse_card

        if not isinstance(value, str):
            return value
        try:
            return parse_card(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


accelerator = click.option(
    "--accelerator",
    type=click.Choice(("sim",)),
    help='Rehearse on a simulated device: a script for a GPU runs on this CPU, "cuda" included.',
)
card = click.option(
    "--card",
    type=CardName(),
    metavar="CARD",
    help="With --accelerator: what is simulated, such as 24GiB, H100 or 2xH100. Default: one of 16GiB.",
)


def simulated(name: str | None, card: Card | None) -> str | None:
    """The card to be simulated, as it stands in the job's environment; raises click.UsageError for one without
    --accelerator.
    """
    if name is None:
        if card is not None:
            raise click.UsageError("--card needs --accelerator sim")
        return None
    import json

    from torchtriage.simulation.cards import UNKNOWN

    return json.dumps((card or UNKNOWN).as_row())
