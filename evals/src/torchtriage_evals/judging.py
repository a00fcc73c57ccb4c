"""Asks the judge's model, point by point; and, before that, measures it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
from inspect_ai.model import ChatMessageUser

from torchtriage_evals.judge import Agreement, agreement, decided, question
from torchtriage_evals.labelled import Labelled
from torchtriage_evals.ledger import Ledger
from torchtriage_evals.scenario import Scenario
from torchtriage_evals.score import Judged, mechanical
from torchtriage_evals.trial import Spent

if TYPE_CHECKING:
    from inspect_ai.model import Model

AT_ONCE = 8
NOBODY = "no judge was named"
REFUSED = "the judge was not accepted"


async def judged(model: Model, query: str, answer: str, point: str, ledger: Ledger) -> tuple[Judged, Spent]:
    """One point of one answer."""
    ledger.check()
    output = await model.generate([ChatMessageUser(content=question(query, answer, point))])
    return decided(output.completion, answer), ledger.add(str(model), output.usage)


async def measured(model: Model, labelled: tuple[Labelled, ...], ledger: Ledger) -> tuple[Agreement, Spent]:
    """How MODEL judges the LABELLED answers. Raises LimitReached."""
    found: list[tuple[Judged, Spent] | None] = [None] * len(labelled)
    room = anyio.CapacityLimiter(AT_ONCE)

    async def one(index: int) -> None:
        async with room:
            each = labelled[index]
            found[index] = await judged(model, each.query, each.answer, each.point, ledger)

    async with anyio.create_task_group() as group:
        for index in range(len(labelled)):
            group.start_soon(one, index)
    done = [(each, got) for each, got in zip(labelled, found, strict=True) if got is not None]
    return agreement((each, got[0]) for each, got in done), sum((got[1] for _, got in done), Spent())


async def points(
    scenario: Scenario, query: str, answer: str, judge: Model | str, ledger: Ledger
) -> tuple[dict[str, Judged], Spent]:
    """Every point of SCENARIO: by its pattern, else by the JUDGE; a text instead of a judge says why there is none."""
    made, spent = mechanical(scenario.points, answer), Spent()
    for point in scenario.points:
        if point.id in made:
            continue
        if not answer.strip():
            made[point.id] = Judged(False)
        elif isinstance(judge, str):
            made[point.id] = Judged(None, judge)
        else:
            made[point.id], cost = await judged(judge, query, answer, point.text, ledger)
            spent += cost
    return made, spent
