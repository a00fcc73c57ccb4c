"""The router's sheet says what the program does: the same specialist first, a question where one is needed."""

from __future__ import annotations

import re

import pytest

from torchtriage.core.plan import Plan, Question
from torchtriage.interface.skillpack.pack import ROUTER, sheet, skills
from torchtriage.routing.listen import listen
from torchtriage.routing.order import order

ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \|.*$", re.M)


def rows(heading: str) -> list[tuple[str, str]]:
    """The first two cells of each row of the table under HEADING, without its own heading."""
    text = (sheet(ROUTER) or "").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return [(found.group(1), found.group(2)) for found in ROW.finditer(text)][1:]


@pytest.mark.parametrize(("heard", "first"), rows("Order"))
def test_the_sheet_and_the_program_send_it_to_the_same_specialist_first(heard: str, first: str) -> None:
    route = order(listen(heard))
    assert isinstance(route, Plan)
    assert route.steps[0].specialist == first.partition(":")[0]


@pytest.mark.parametrize("heard", [heard for heard, _ in rows("Ask once")])
def test_what_the_sheet_asks_about_the_program_asks_about(heard: str) -> None:
    assert isinstance(order(listen(heard)), Question)


def test_the_sheet_names_every_specialist() -> None:
    text = sheet(ROUTER) or ""
    assert [name for name in skills() if name not in text] == []
    assert len(rows("Order")) > len(rows("Ask once")) > 1
