"""What `ask` answers: the route, as JSON values and as text. Loads no engine: a cold `ask` waits for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from functools import lru_cache
from typing import Any

from msgspec.structs import asdict

from torchtriage.core.plain import SCHEMA, plain
from torchtriage.core.plan import Plan, Question, Referral, Route, Step
from torchtriage.core.query import Query
from torchtriage.report.paper import PLAIN, Paper
from torchtriage.report.text import line


def as_dict(query: Query, route: Route) -> dict[str, Any]:
    """The answer to QUERY in the shape of the interface; core.plain writes it."""
    return {
        "schema": SCHEMA,
        "kind": _kind(route),
        "route": list(route.route) if isinstance(route, Plan) else [],
        "steps": _steps(tuple(route.steps)) if isinstance(route, Plan) else [],
        "symptoms": _heard(query.symptoms, "symptom", "specialist"),
        "claims": _heard(query.claims, "kind"),
        "pressures": list(dict.fromkeys(pressure.kind.value for pressure in query.pressures)),
        "answers": [{"to": to, "sentence": sentence} for to, sentence in _answers(query)],
        "decoded": _heard(query.decoded, "signature", "fields", "faults", "says"),
        "question": route.question if isinstance(route, Question) else None,
        "options": list(route.options) if isinstance(route, Question) else [],
        "refer_to": route.refer_to if isinstance(route, Referral) else None,
        "because": route.because if isinstance(route, Referral) else None,
        "leaning": asdict(query.leaning) if query.leaning else None,
        "passed_over": query.passed_over,
    }


def _kind(route: Route) -> str:
    match route:
        case Plan():
            return "plan"
        case Question():
            return "question"
        case Referral():
            return "referral"


@lru_cache(maxsize=4096)
def _steps(steps: tuple[Step, ...]) -> list[dict[str, Any]]:
    return [{name: value for name, value in plain(step).items() if (name, value) != ("read", None) and name != "kind"}
            for step in steps]  # fmt: skip


def _heard(spans: Iterable[Any], *names: str) -> list[dict[str, Any]]:
    wanted = (*names, "start", "end", "text")
    return [{name: _value(getattr(span, name)) for name in wanted} for span in spans]


def _value(value: Any) -> Any:
    match value:
        case Enum():
            return value.value
        case tuple():
            return list(value)
        case _:
            return value


def _answers(query: Query) -> tuple[tuple[str, str], ...]:
    """To what, and the sentence; none twice."""
    pressures = [(pressure.kind.value, pressure.answer) for pressure in query.pressures]
    claims = [(claim.kind.value, claim.answer) for claim in query.claims]
    return tuple(dict.fromkeys([*pressures, *claims]))


def render(query: Query, route: Route, paper: Paper = PLAIN) -> str:
    """The answer to QUERY as text."""
    match route:
        case Plan():
            body = _plan(route, paper)
        case Question():
            body = _question(route, paper)
        case Referral():
            body = _referral(route, paper)
    rest = (*_heeded(query, paper), *_meanings(query, paper), *_leaning(query, paper))
    return "\n".join([*body, *rest]).rstrip("\n") + "\n"


def _plan(plan: Plan, paper: Paper) -> Iterator[str]:
    yield paper.ink("Plan", "bold")
    for number, step in enumerate(plan.steps, start=1):
        yield f"  {number}. {paper.ink(step.specialist, 'bold')} {paper.ink(f'({step.stage.value})', 'dim')}"
        yield from paper.fold(line(step.because), 5)
        yield from _lists(step, paper)
        yield ""


def _lists(step: Step, paper: Paper) -> Iterator[str]:
    lists = {
        "opens on": " or ".join(step.opens_on),
        "collect": "; ".join(step.collect),
        "rule out": ", ".join(step.rule_out),
        "read": step.read or "",
    }
    for name, text in lists.items():
        if text:
            yield from paper.fold(line(text), 5, mark=f"{name:<10}")
    for command in step.examine:
        yield f"     {paper.ink(f'$ {line(command)}', 'info')}"


def _question(question: Question, paper: Paper) -> Iterator[str]:
    yield paper.ink("One question first", "bold")
    yield from paper.fold(line(question.question), 2)
    yield from paper.items(map(line, question.options), 4)
    yield ""


def _referral(referral: Referral, paper: Paper) -> Iterator[str]:
    yield f"{paper.ink('Not ours', 'bold')}: this belongs to {line(referral.refer_to)}."
    yield from paper.fold(line(referral.because), 2)
    yield ""


def _heeded(query: Query, paper: Paper) -> Iterator[str]:
    answers = _answers(query)
    if answers:
        yield paper.ink("Heard, and not taken for a diagnosis", "bold")
        yield from paper.items((f"{to}: {line(sentence)}" for to, sentence in answers), 2)
        yield ""


def _meanings(query: Query, paper: Paper) -> Iterator[str]:
    if query.decoded:
        yield paper.ink("The message says", "bold")
    for item in query.decoded:
        fields = ", ".join(f"{name} {value}" for name, value in sorted(item.fields.items()))
        faults = f" It can mean: {', '.join(item.faults)}." if item.faults else ""
        says = item.says or item.signature.replace("-", " ")
        yield from paper.items([line(f"{says}{f' ({fields})' if fields else ''}.{faults}")], 2)
        yield ""


def _leaning(query: Query, paper: Paper) -> Iterator[str]:
    """How far the words themselves speak for the route, and what was not listened to."""
    if lean := query.leaning:
        words = f", most of all: {', '.join(map(line, lean.words))}" if lean.words else ""
        yield from paper.fold(f"The words as a whole lean to {lean.to}, {100 * lean.share:.0f} %{words}.", 0)
    if query.passed_over:
        yield from paper.fold(
            f"{query.passed_over} of {len(query.text)} characters were not listened to: lines repeated but for their "
            "numbers, and the middle of a long text. Error messages were looked for in all of it.",
            0,
        )
