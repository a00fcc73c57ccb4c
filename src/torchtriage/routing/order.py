"""A query becomes a route: who looks first, what waits for what, or the one thing to ask."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec.structs import replace

from torchtriage.core.plan import EXAMINATIONS, Plan, Question, Referral, Route, Stage, Step
from torchtriage.core.query import Leaning, Query
from torchtriage.core.some import some
from torchtriage.routing.compiled import lexicon
from torchtriage.routing.hear import Heard, hear
from torchtriage.routing.lexicon import Lexicon
from torchtriage.routing.steps import Subject, members, planned, step_of, subject_of, troubles
from torchtriage.routing.tables import RoomRow

HEARD, MESSAGE, NAMED = 0.3, 0.7, 0.85
JOINS, LEAVES = 0.45, 0.15
REMEDY = "The evidence shows a fault of this room: its page has the remedies and how to verify them."
GENERAL = tuple(EXAMINATIONS.values())


def order(query: Query) -> Route:
    """The same query always leads to the same route; its pressures are never looked at.

    What was heard makes the route. Where the words as a whole lean elsewhere, and far enough, they decide who comes
    first; they also say who else is wanted.
    """
    known, heard, subject = lexicon(), hear(query.text), subject_of(query)
    route = by_phrases(subject, heard)
    leaning = query.leaning
    if leaning is None:
        return route
    if leaning.to != leads(route) and leaning.share >= _needed(route, query):
        route = _leant(leaning, subject, heard, known)
    return _joined(route, leaning, subject) if isinstance(route, Plan) else route


def _needed(route: Route, query: Query) -> float:
    """The share that a leaning needs against the ROUTE of the phrases: none against a mere question."""
    match route:
        case Question():
            return 0.0
        case Referral():
            return NAMED
        case _:
            return MESSAGE if query.decoded else HEARD


def by_phrases(subject: Subject, heard: Heard) -> Route:
    """The route that the phrases and messages alone would make."""
    known = lexicon()
    # Another framework's name says little beside a message that only PyTorch prints.
    if not heard.decodings and (referral := _referral(heard, known, decides=True)):
        return referral
    if troubles(subject.seen, known):
        return planned(subject)
    if referral := _referral(heard, known, decides=False):
        return referral
    if subject.seen:
        return planned(subject)
    if (named := subject.proposed or subject.guessed) and not heard.of("question"):
        return planned(Subject(named))
    return _asked(heard, known)


def _asked(heard: Heard, known: Lexicon) -> Question:
    asked = heard.of("question")
    row = known.questions[int(max(asked, key=lambda sound: sound.length).name) if asked else -1]
    return Question(row.question, some(row.options, "options"))


def leads(route: Route) -> str:
    """What a leaning to ROUTE is called."""
    match route:
        case Plan():
            return route.route[0]
        case Referral():
            return f"referral {route.refer_to}"
        case _:
            return "question"


def _leant(leaning: Leaning, subject: Subject, heard: Heard, known: Lexicon) -> Route:
    """The route to where the words lean."""
    kind, _, field = leaning.to.partition(" ")
    if kind == "question":
        return _asked(heard, known)
    if kind == "referral":
        because = next(row.because for row in known.referrals if row.refer_to == field)
        return Referral(field, because)
    return _plan_of(leaning.to, subject, known)


def _plan_of(specialist: str, subject: Subject, known: Lexicon) -> Plan:
    """A plan that SPECIALIST leads: from what was heard of the room; else with the room's own reason."""
    for named in (subject.seen, subject.proposed, subject.guessed):
        own = tuple(slug for slug in named if known.symptoms[slug].specialist == specialist)
        if own and (plan := planned(Subject(own, subject.proposed))).route[0] == specialist:
            return plan
    room = known.rooms[specialist]
    return Plan(some([_unnamed(room)], "steps"))


def _joined(plan: Plan, leaning: Leaning, subject: Subject) -> Plan:
    """PLAN with the specialists whom the words also ask for, and without those whom they do not."""
    first = plan.route[0]
    stays = [
        step for step in plan.steps if step.specialist == first or leaning.rooms.get(step.specialist, 1.0) > LEAVES
    ]
    missing = sorted(
        (-share, room) for room, share in leaning.rooms.items() if share > JOINS and room not in plan.route
    )
    added = [_beside(room, plan, subject) for _, room in missing]
    if not added and len(stays) == len(plan.steps):
        return plan
    steps = [*stays, *added]
    return Plan(some(sorted(steps, key=lambda step: list(Stage).index(step.stage)), "steps"))


def _beside(specialist: str, plan: Plan, subject: Subject) -> Step:
    """A step to SPECIALIST behind the others: as a cure that waits where precedence knows one, else as they stand."""
    known, first = lexicon(), plan.route[0]
    for row in known.precedence.diagnosis:
        if first in {known.symptoms[slug].specialist for slug in members([row.issue], known)}:
            for treat in row.treat:
                if known.symptoms[treat.symptom].specialist == specialist and treat.opens_on:
                    return step_of(treat, subject, known)
    stage = max(step.stage for step in plan.steps if step.stage is not Stage.TREAT)
    own = _plan_of(specialist, subject, known).steps[0]
    return replace(own, stage=stage, opens_on=())


def _unnamed(room: RoomRow) -> Step:
    """The first step to a room of whose symptoms none was named."""
    return Step(
        specialist=room.specialist,
        stage=Stage.DIAGNOSE,
        because=room.why,
        collect=room.collect,
        rule_out=room.faults,
        examine=GENERAL,
        read=room.specialist,
    )


def _referral(heard: Heard, known: Lexicon, *, decides: bool) -> Referral | None:
    ours = {sound.name for sound in heard.of("unless")}
    for sound in heard.of("referral"):
        row = known.referrals[int(sound.name)]
        if row.decides is decides and sound.name not in ours:
            return Referral(row.refer_to, row.because)
    return None


def opened(route: Route | None, shown: Collection[str], homes: Mapping[str, str]) -> tuple[Step, ...]:
    """The treating steps that a plan lacks and that the SHOWN faults and verdicts open; homes: fault → specialist.

    First the cures that wait, in the table of precedence, for what was shown of this plan's issues, though the query
    did not ask for them; then, for each fault that no open step treats, a step to its own specialist.
    """
    known = lexicon()
    planned = route.steps if isinstance(route, Plan) else ()
    found: dict[tuple[str, Stage], Step] = {}
    treating = {(step.specialist, step.stage): set(step.opens_on) for step in planned}
    rooms = {step.specialist for step in planned}
    for row in known.precedence.diagnosis:
        if rooms & {known.symptoms[slug].specialist for slug in members([row.issue], known)}:
            for treat in row.treat:
                visit = (known.symptoms[treat.symptom].specialist, Stage.TREAT)
                if visit not in treating and set(treat.opens_on) & set(shown):
                    found.setdefault(visit, step_of(treat, Subject((treat.symptom,)), known))
    waiting = set[str]().union(*treating.values(), *(step.opens_on for step in found.values()))
    for fault in sorted(set(shown) & set(homes) - waiting):
        visit = (homes[fault], Stage.TREAT)
        if visit in found:
            found[visit] = replace(found[visit], opens_on=(*found[visit].opens_on, fault))
        else:
            found[visit] = _remedy(fault, homes[fault])
    return tuple(found.values())


def _remedy(fault: str, specialist: str) -> Step:
    return Step(specialist, Stage.TREAT, REMEDY, examine=(f"torchtriage explain {fault}",), opens_on=(fault,))
