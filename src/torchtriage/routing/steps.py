"""What was heard becomes steps: the rows of precedence, the symptoms' own reasons, the cures that wait."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache

from msgspec import Struct

from torchtriage.core.plan import Plan, Stage, Step
from torchtriage.core.query import Claim, ClaimKind, Mention, Query
from torchtriage.core.some import some
from torchtriage.routing.compiled import lexicon
from torchtriage.routing.lexicon import Lexicon
from torchtriage.routing.tables import SequenceRow, StepRow


class Subject(Struct, frozen=True):
    """What the query is about, as slugs of symptoms in the order of the text.

    seen: said to be so. proposed: named only as a cure or by an authority. guessed: named only as a cause.
    What was named only as a past fix is not in it.
    """

    seen: tuple[str, ...]
    proposed: tuple[str, ...] = ()
    guessed: tuple[str, ...] = ()


def subject_of(query: Query) -> Subject:
    """A claim says where to look, never what is so: a symptom heard only inside claims does not choose the route."""
    groups: dict[str, dict[str, None]] = {"seen": {}, "proposed": {}, "guessed": {}}
    for mention in query.symptoms:
        kinds = {claim.kind for claim in query.claims if _within(mention, claim)}
        if not kinds:
            groups["seen"][mention.symptom] = None
        elif kinds & {ClaimKind.PROPOSED_CURE, ClaimKind.AUTHORITY}:
            groups["proposed"][mention.symptom] = None
        elif ClaimKind.GUESSED_CAUSE in kinds:
            groups["guessed"][mention.symptom] = None
    return Subject(**{name: tuple(slugs) for name, slugs in groups.items()})


def _within(mention: Mention, claim: Claim) -> bool:
    return mention.start < claim.end and claim.start < mention.end


def troubles(slugs: Iterable[str], known: Lexicon) -> tuple[str, ...]:
    """Those that say that something is wrong; the others only name a subject, which has a page to read."""
    return tuple(slug for slug in slugs if known.symptoms[slug].read is None)


@lru_cache(maxsize=4096)
def planned(subject: Subject) -> Plan:
    """Every query with this subject has this plan: it is made once."""
    known = lexicon()
    wrong = troubles(subject.seen, known)
    row = next((row for row in known.precedence.sequence if _holds(row, subject.seen, wrong, known)), None)
    settled = members((*row.heard, *row.settles), known) if row else frozenset[str]()
    rows = list(row.steps) if row else []
    rows += [_own(slug, known) for slug in _ranked(wrong, known) or subject.seen if slug not in settled]
    steps = [step_of(each, subject, known) for each in _once(rows, known)]
    steps += _treatments(subject, steps, known)
    return Plan(some(sorted(steps, key=lambda step: list(Stage).index(step.stage)), "steps"))


def _holds(row: SequenceRow, seen: Collection[str], wrong: Collection[str], known: Lexicon) -> bool:
    """Whether everything the row asks for was seen, some trouble among it where there is any."""
    together = all(members([name], known) & set(seen) for name in row.heard)
    return together and (not wrong or bool(members(row.heard, known) & set(wrong)))


def members(names: Iterable[str], known: Lexicon) -> frozenset[str]:
    groups = known.precedence.groups
    return frozenset(slug for name in names for slug in groups.get(name, (name,)))


def _ranked(slugs: Iterable[str], known: Lexicon) -> list[str]:
    rank = known.precedence.rank
    return sorted(slugs, key=lambda slug: rank.index(known.symptoms[slug].specialist))


def _own(slug: str, known: Lexicon) -> StepRow:
    symptom = known.symptoms[slug]
    return StepRow(slug, symptom.because, symptom.stage)


def _once(rows: Iterable[StepRow], known: Lexicon) -> Iterator[StepRow]:
    """The first row of each specialist, unless a later one treats."""
    visited: set[str] = set()
    for row in rows:
        specialist = known.symptoms[row.symptom].specialist
        if specialist not in visited:
            visited.add(specialist)
            yield row


def _treatments(subject: Subject, steps: Collection[Step], known: Lexicon) -> Iterator[Step]:
    """The treating steps of the diagnosis-first rows: gated, and only where the query touches their subject."""
    touched = {known.symptoms[slug].specialist for slug in (*subject.seen, *subject.proposed)}
    planned = {step.specialist: step for step in steps}
    treated = {step.specialist for step in steps if step.stage is Stage.TREAT}
    for row in known.precedence.diagnosis:
        diagnosing = {known.symptoms[slug].specialist for slug in members([row.issue], known) & set(subject.seen)}
        for treat in row.treat:
            specialist = known.symptoms[treat.symptom].specialist
            again = specialist in diagnosing
            if not diagnosing & set(planned) or specialist in treated or specialist not in touched:
                continue
            if (specialist in planned) is again and (treat.opens_on or _rule_out(treat, subject, known)):
                treated.add(specialist)
                yield step_of(treat, subject, known)


def step_of(row: StepRow, subject: Subject, known: Lexicon) -> Step:
    symptom = known.symptoms[row.symptom]
    stage = row.stage or symptom.stage
    own = _heard_by(row, subject, known)
    rule_out = _rule_out(row, subject, known)
    pages = [page for slug in own if (page := known.symptoms[slug].read)]
    return Step(
        specialist=symptom.specialist,
        stage=stage,
        because=row.because,
        collect=_union(known.symptoms[slug].collect for slug in own),
        rule_out=rule_out,
        examine=_union(known.symptoms[slug].examine for slug in own),
        read=pages[0] if pages and stage is not Stage.TREAT else None,
        opens_on=(row.opens_on or rule_out) if stage is Stage.TREAT else (),
    )


def _heard_by(row: StepRow, subject: Subject, known: Lexicon) -> tuple[str, ...]:
    """The symptoms of the step's own room: the troubles seen, else the subjects named, else the row's own."""
    room = known.symptoms[row.symptom].specialist
    seen = [slug for slug in (*subject.seen, *subject.proposed) if known.symptoms[slug].specialist == room]
    return troubles(seen, known) or tuple(seen) or (row.symptom,)


def _rule_out(row: StepRow, subject: Subject, known: Lexicon) -> tuple[str, ...]:
    """The faults that explain what was seen: all of them for the room whose symptom it is, else the room's own.

    A subject that was only named counts where nothing is wrong.
    """
    room = known.symptoms[row.symptom].specialist
    found: dict[str, str] = {}
    for slug in (*(troubles(subject.seen, known) or subject.seen), *troubles([row.symptom], known)):
        whole_view = known.symptoms[slug].specialist == room and row.stage is not Stage.TREAT
        for each in known.explained[slug]:
            if whole_view or each.specialist == room:
                found[each.fault] = each.specialist
    return tuple(sorted(found, key=lambda fault: (found[fault] != room, fault)))


def _union(groups: Iterable[Iterable[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(item for group in groups for item in group))
