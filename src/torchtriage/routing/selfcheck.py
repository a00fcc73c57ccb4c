"""The six questions to put to oneself before answering, answered by code as far as code can."""

from __future__ import annotations

from functools import cache

from msgspec import Struct

from torchtriage.catalog.cache import compiled
from torchtriage.core.plan import Plan, Question, Route, Stage
from torchtriage.core.query import Query
from torchtriage.routing import tables
from torchtriage.routing.draft import Flag, review
from torchtriage.routing.order import order


class CheckRow(tables.Row, frozen=True):
    """One question to put to oneself before answering, and what to do when the answer is no."""

    name: str
    question: str
    do: str


class Checks(tables.Row, frozen=True):
    """selfcheck.toml."""

    check: tuple[CheckRow, ...]


class Check(Struct, frozen=True):
    """A question of the self-check with its answer. do: the way out where it did not pass."""

    name: str
    question: str
    passed: bool
    do: str


def check(query: Query, route: Route, draft: str = "") -> tuple[Check, ...]:
    """All six questions, in order, over what was heard, where it leads and what one is about to answer."""
    passed = _passed(query, route, review(draft))
    return tuple(Check(row.name, row.question, passed[row.name], row.do) for row in _rows())


def _passed(query: Query, route: Route, flags: tuple[Flag, ...]) -> dict[str, bool]:
    steps = route.steps if isinstance(route, Plan) else ()
    named = {mention.specialist for mention in query.symptoms}
    return {
        "symptom-identified": bool(named) or not steps,
        "specialist-known": not steps or any(step.specialist in named for step in steps),
        "no-direct-advice": not any(flag.specialist for flag in flags),
        "diagnosis-first": not steps or steps[0].stage is not Stage.TREAT,
        "not-ambiguous": isinstance(route, Question) is isinstance(order(query), Question),
        "pressure-resisted": all(flag.specialist for flag in flags),
    }


@cache
def _rows() -> tuple[CheckRow, ...]:
    return compiled("selfcheck", tables.files(), Checks, _made).check


def _made() -> Checks:
    from torchtriage.routing import build  # tomllib is needed only when a table has changed

    return build.read("selfcheck", Checks)
