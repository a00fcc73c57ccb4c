"""Verdict, Why, Next: what every report for people says of a case, before it is set in console text, HTML or Markdown.

All text in an outline is inert: no control characters, and one line where a line is meant.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from torchtriage.core.case import Case
from torchtriage.core.evidence import Evidence, Verdict
from torchtriage.core.fault import Remedy
from torchtriage.core.finding import Finding
from torchtriage.core.plain import number, within
from torchtriage.core.plan import Plan, Question, Referral, Route, Step
from torchtriage.report import lines, measures, places, training
from torchtriage.report.ending import Ending, end_of, ending
from torchtriage.report.ending import verdict as ended
from torchtriage.report.experiment import Tried, tried
from torchtriage.report.figure import figure, measured
from torchtriage.report.hangs import Hang, hangs
from torchtriage.report.measures import Share
from torchtriage.report.ranks import Side, side
from torchtriage.report.rehearsal import Rehearsed, rehearsed
from torchtriage.report.replicas import Replicas, replicas
from torchtriage.report.text import count, line, sentence
from torchtriage.report.unseen import ENDS, Blind, blind

SHOWN = 8
"""Files, or other places, printed for one fault; the case holds them all."""
DEAR = 0.02
"""Share of the run: twice what the probes may take once the first steps are over."""


class Spot(Struct, frozen=True):
    """The places of a file that one sentence is true of, and the source line of the first."""

    place: str
    excerpt: str


class Sight(Struct, frozen=True):
    """One fact: where, what, how much, the source line itself and the step where they are known.

    also: the other files of which it is true.
    """

    place: str
    fact: str
    measure: str
    excerpt: str
    step: int | None = None
    unit: str = ""
    also: tuple[Spot, ...] = ()

    @property
    def spots(self) -> tuple[Spot, ...]:
        """All files of which it is true."""
        return (Spot(self.place, self.excerpt), *self.also)


class Trouble(Struct, frozen=True):
    """One fault with everything that shows it; more: how many places are left out."""

    severity: str
    slug: str
    title: str
    specialist: str
    confidence: str
    sights: tuple[Sight, ...]
    more: int
    remedies: tuple[Remedy, ...]


class Given(Struct, frozen=True):
    """A measured verdict, with the evidence for it."""

    slug: str
    title: str
    sights: tuple[Sight, ...]


class Open(Struct, frozen=True):
    """A step of the plan that may be taken now."""

    specialist: str
    stage: str
    because: str
    rule_out: str
    commands: tuple[str, ...]


class Outline(Struct, frozen=True):
    """tone: error, warning, info, good or unknown: how the verdict is to be taken.

    pace, course, memory, overhead: "" where it was not measured. advice: what to do beside the remedies.
    options: the answers to the one question.
    side, hangs, replicas: of a job of several ranks. ending: how it ended badly, if it did. rehearsal: of a job on a
    simulated device. tried: of an experiment.
    """

    tone: str
    verdict: str
    ending: Ending | None
    pace: str
    course: str
    memory: str
    shares: tuple[Share, ...]
    given: tuple[Given, ...]
    troubles: tuple[Trouble, ...]
    options: tuple[str, ...]
    advice: tuple[str, ...]
    steps: tuple[Open, ...]
    blind: tuple[Blind, ...]
    overhead: str
    side: Side | None
    hangs: tuple[Hang, ...]
    replicas: Replicas | None
    rehearsal: Rehearsed | None
    tried: tuple[Tried, ...]


def outline(case: Case) -> Outline:
    """The outline of CASE."""
    tone, verdict = _verdict(case)
    rehearsal = rehearsed(case.measurements)
    return Outline(
        tone,
        f"{verdict} {rehearsal.verdict}" if rehearsal else verdict,
        ending(case),
        _pace(case),
        _course(case),
        _memory(case),
        measures.shares(case.measurements),
        _given(case),
        troubles(case.findings),
        tuple(map(line, case.route.options)) if isinstance(case.route, Question) else (),
        _advice(case),
        tuple(_open(step) for step in case.open_steps),
        blind(case),
        _overhead(case),
        side(case.measurements),
        hangs(case.measurements),
        replicas(case.measurements),
        rehearsal,
        tuple(tried(case.measurements)),
    )


def _given(case: Case) -> tuple[Given, ...]:
    """The verdicts, but for those that are told as a fault of the same name."""
    told = {finding.fault.slug for finding in case.findings}
    return tuple(
        Given(line(item.verdict), line(item.title), _sights(item.evidence[:SHOWN]))
        for item in case.verdicts
        if item.verdict not in told
    )


def troubles(findings: Iterable[Finding]) -> tuple[Trouble, ...]:
    """The findings by fault, in the order in which the faults first appear."""
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(finding.fault.slug, []).append(finding)
    return tuple(_trouble(group) for group in groups.values())


def _trouble(group: Sequence[Finding]) -> Trouble:
    fault = group[0].fault
    evidence = [item for finding in group for item in finding.evidence]
    return Trouble(
        fault.severity.value,
        fault.slug,
        line(fault.title),
        line(fault.specialist),
        fault.confidence.value,
        *_shown(evidence),
        tuple(_remedy(remedy) for remedy in fault.remedies),
    )


def _shown(evidence: Sequence[Evidence]) -> tuple[tuple[Sight, ...], int]:
    """The facts with their places, of many files the first; and how many places are left out."""
    sights: list[Sight] = []
    room, more = SHOWN, 0
    for group in places.gathered(evidence):
        spots = places.by_spot(group)
        if room > 0:
            sights.append(_sight(group, spots[:room]))
        more += sum(len(spot) for spot in spots[max(room, 0) :])
        room -= len(spots)
    return tuple(sights), more


def _sight(group: Sequence[Evidence], spots: Sequence[Sequence[Evidence]]) -> Sight:
    first, *others = (Spot(places.spelt(spot), line(spot[0].place.anchor or "")) for spot in spots)
    item = group[0]
    fact, measure = places.shared_fact(group), line(measured(item))
    return Sight(first.place, fact, measure, first.excerpt, item.place.step, item.unit or "", tuple(others))


def _remedy(remedy: Remedy) -> Remedy:
    words = {name: line(getattr(remedy, name)) for name in ("title", "when", "cost", "verify")}
    return replace(remedy, **words)


def _sights(evidence: Iterable[Evidence]) -> tuple[Sight, ...]:
    return tuple(_sight([item], [[item]]) for item in evidence)


def _verdict(case: Case) -> tuple[str, str]:
    """What ended the job, else the worst finding, else what was looked at; and its tone."""
    end = end_of(case)
    if end is not None:
        return "error", ended(case, end)
    if case.findings:
        return _worst(case)
    unseen = len({item.detector for item in case.inconclusive})
    rest = f"{count(unseen, 'check')} could not tell: see what was not seen." if unseen else ""
    broken = next((item.why for item in case.inconclusive if item.detector in ENDS), "")
    if broken:
        return "unknown", f"The job broke off: {line(broken)}. {_looked(case)}"
    if case.verdicts or case.observed:
        said = (_looked(case), training.sentence(case.measurements), _spoken(case.verdicts), rest)
        return "info" if training.advice(case.measurements) else "good", " ".join(filter(None, said))
    if unseen:
        first = case.inconclusive[0]
        return "unknown", f"Nothing usable was found: {sentence(first.why)}"
    return "unknown", f"Nothing has been examined yet. {_before(case.route)}".strip()


def _looked(case: Case) -> str:
    """That no known fault was found, and in what: the most that silence may be taken for."""
    steps = measures.steps(case.measurements)
    looked = count(len({item.detector for item in case.observed}), "check")
    lined = number(within(case.measurements, "logs", "lines"))
    where = f"in {count(steps, 'step')}" if steps is not None else "in what was read"
    where = f"in {count(int(lined), 'line')} of logs" if steps is None and lined else where
    return f"No known fault {where} ({looked}).{_logged(case)}"


def _logged(case: Case) -> str:
    """Where the loss of a log went."""
    values = [number(pair[-1]) for pair in within(case.measurements, "logs", "loss") or () if pair]
    known = [value for value in values if value is not None]
    return f" The logged loss went from {known[0]:.3g} to {known[-1]:.3g}." if len(known) > 1 else ""


def _before(route: Route | None) -> str:
    match route:
        case Plan():
            return "The plan says where to look first."
        case Question():
            return f"One question first: {sentence(route.question)}"
        case Referral():
            return f"It belongs to {line(route.refer_to)}: {sentence(route.because)}"
        case None:
            return ""


def _worst(case: Case) -> tuple[str, str]:
    worst, others = case.findings[0], len(places.by_file(case.findings)) - 1
    where = line(str(worst.evidence[0].place))
    more = f" {count(others, 'more finding')} below." if others else ""
    return worst.fault.severity.value, f"{line(worst.fault.title)} ({worst.fault.slug}): {where}.{more}"


def _spoken(verdicts: Sequence[Verdict]) -> str:
    return " ".join(f"{line(verdict.title).rstrip('.')} ({line(verdict.verdict)})." for verdict in verdicts)


def _pace(case: Case) -> str:
    pace, steps = measures.pace(case.measurements), measures.steps(case.measurements)
    if pace is None:
        return ""
    words = f"{figure(pace.median, 's')} per step (median"
    if pace.low is not None and pace.high is not None:
        words += f"; {figure(pace.low, 's')} to {figure(pace.high, 's')} for four steps in five"
    return f"{words}; {count(steps, 'step')} measured)" if steps is not None else f"{words})"


def _course(case: Case) -> str:
    """What the loss did, where the verdict speaks of something else, and which user function takes the time."""
    told = training.sentence(case.measurements) if case.findings or end_of(case) else ""
    busy = lines.sentence(case.measurements)
    return " ".join(filter(None, (told, busy)))


def _advice(case: Case) -> tuple[str, ...]:
    """The next things to do beside remedies: about how the job ended, the course of its loss, and where time goes."""
    block = ending(case)
    about = (training.advice(case.measurements), lines.advice(case.measurements)) if not case.findings else ()
    return tuple(filter(None, (block.do if block else "", *about, lines.unexplained(case.measurements))))


def _memory(case: Case) -> str:
    taken = [
        f"{figure(low, 'bytes')} {where} after warm-up, {figure(high, 'bytes')} at most"
        for where, low, high in measures.memory(case.measurements)
    ]
    return f"Memory: {'; '.join(taken)}." if taken else ""


def _overhead(case: Case) -> str:
    share = measures.overhead(case.measurements)
    later = measures.overhead_later(case.measurements)
    if share is None:
        return ""
    if later is not None:
        rest = f"; after the first steps, which are watched closely, {figure(later, 'share')}"
    else:
        rest = ", for the first steps are watched closely, and there were no others" if share > DEAR else ""
    return f"At least {figure(share, 'share')} of the run went into the probes themselves{rest}."


def _open(step: Step) -> Open:
    return Open(
        line(step.specialist),
        step.stage.value,
        line(step.because),
        ", ".join(line(slug) for slug in step.rule_out),
        tuple(line(command) for command in step.examine),
    )
