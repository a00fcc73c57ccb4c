"""The report as GitHub-flavoured Markdown, for issues and pull requests."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchtriage.core.case import Case
from torchtriage.core.fault import Remedy
from torchtriage.report.ending import Ending
from torchtriage.report.experiment import Tried
from torchtriage.report.figure import figure
from torchtriage.report.outline import Given, Open, Outline, Sight, Trouble, outline
from torchtriage.report.ranks import SHOWN
from torchtriage.report.rehearsal import Rehearsed
from torchtriage.report.text import count, line

_MARKS = re.compile(r"([\\`*_{}\[\]()#+!|~$-])")
_TICKS = re.compile(r"`+")


def render(case: Case) -> str:
    """CASE as Markdown; whatever a job or file said is shown as it is spelt, never as markup, link or mention."""
    story = outline(case)
    parts = [
        *_verdict(story),
        *_why(story),
        *(each for part in (story.rehearsal, *story.tried) if part for each in _named(part)),
        *_standstill(story),
        *_ranks(story),
        *_next(story),
        *_unseen(story),
    ]
    return "\n".join(parts).rstrip("\n") + "\n"


def quoted(text: str) -> str:
    """TEXT on one line, with every mark that Markdown or HTML would act upon taken literally."""
    plain = line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    plain = _MARKS.sub(r"\\\1", plain)
    return plain.replace("@", "&#64;").replace("://", "&#58;//").replace("www.", "www&#46;")


def code(text: str) -> str:
    """TEXT as a code span whose fence is longer than any within it."""
    plain = line(text)
    fence = "`" * (1 + max((len(run) for run in _TICKS.findall(plain)), default=0))
    pad = " " if plain.startswith("`") or plain.endswith("`") else ""
    return f"{fence}{pad}{plain}{pad}{fence}" if plain else ""


def _verdict(story: Outline) -> Iterator[str]:
    yield from ("## Verdict", "", f"**{story.tone}**: {quoted(story.verdict)}", "")


def _why(story: Outline) -> Iterator[str]:
    if story.ending or story.pace or story.course or story.shares or story.given or story.troubles:
        yield from ("## Why", "")
    if story.ending:
        yield from _ending(story.ending)
    if story.pace:
        yield from (quoted(story.pace), "")
    if story.shares:
        yield from ("| phase | share | time |", "|---|---:|---:|")
        for item in story.shares:
            seconds = "" if item.seconds is None else figure(item.seconds, "s")
            yield f"| {item.phase} | {figure(item.share, 'share')} | {seconds} |"
        yield ""
    if story.memory:
        yield from (quoted(story.memory), "")
    if story.course:
        yield from (quoted(story.course), "")
    for given in story.given:
        yield from _given(given)
    for trouble in story.troubles:
        yield from _trouble(trouble)


def _named(part: Rehearsed | Tried) -> Iterator[str]:
    """A table of two columns: what each line is about, and the line."""
    yield from (f"## {quoted(part.title)}", "", "| | |", "|---|---|")
    yield from (f"| {quoted(name)} | {quoted(said)} |" for name, said in part.rows)
    yield ""


def _ending(ending: Ending) -> Iterator[str]:
    excerpt = f"<br>{code(ending.excerpt)}" if ending.excerpt else ""
    yield from (f"### ended: {quoted(ending.title)}", "", f"- {code(ending.place)}{excerpt}")
    yield from (f"- {quoted(each)}" for each in (*ending.message, *([ending.met] if ending.met else ())))
    yield ""


def _given(given: Given) -> Iterator[str]:
    yield from (f"### measured: {code(given.slug)} {quoted(given.title)}", "")
    yield from map(_sight, given.sights)
    yield ""


def _trouble(trouble: Trouble) -> Iterator[str]:
    yield from (f"### {trouble.severity}: {code(trouble.slug)} {quoted(trouble.title)}", "")
    yield from map(_sight, trouble.sights)
    if trouble.more:
        yield f"- and {count(trouble.more, 'more place')}, in the case"
    yield ""


def _sight(sight: Sight) -> str:
    measure = f" **{quoted(sight.measure)}**" if sight.measure else ""
    excerpt = f"<br>{code(sight.excerpt)}" if sight.excerpt else ""
    where = ", ".join(code(spot.place) for spot in sight.spots)
    return f"- {where}: {quoted(sight.fact)}{measure}{excerpt}"


def _standstill(story: Outline) -> Iterator[str]:
    if story.hangs:
        yield from ("## Where the ranks stand", "", "| rank | stands | place |", "|---|---|---|")
        yield from (f"| {each.ranks} | {quoted(each.stands)} | {quoted(each.place)} |" for each in story.hangs[:SHOWN])
        yield ""


def _ranks(story: Outline) -> Iterator[str]:
    if story.side is None:
        return
    side, words = story.side, [*story.side.words, *([story.replicas.words] if story.replicas else [])]
    yield from ("## Ranks", "", *(f"- {quoted(each)}" for each in words), *([""] if words else []))
    yield f"| {' | '.join(column.name for column in side.columns)} |"
    yield f"|{'---:|' * len(side.columns)}"
    for mark, (rank, *cells) in zip(side.marks, side.rows, strict=True):
        yield f"| {rank}{f' {mark}' if mark else ''} | {' | '.join(map(quoted, cells))} |"
    note = " ".join(filter(None, (side.note, side.some)))
    yield from ("", *([quoted(note), ""] if note else []))


def _next(story: Outline) -> Iterator[str]:
    if story.advice or story.troubles or story.options or story.steps:
        yield from ("## Next", "")
    if story.advice:
        yield from (*(f"- {quoted(each)}" for each in story.advice), "")
    for trouble in story.troubles:
        yield from (f"For {code(trouble.slug)}:", "")
        for remedy in trouble.remedies:
            yield from _remedy(remedy)
        yield ""
    yield from (f"- {quoted(option)}" for option in story.options)
    if story.steps:
        yield from ("Open steps of the plan:", "")
        for step in story.steps:
            yield from _open(step)
        yield ""


def _remedy(remedy: Remedy) -> Iterator[str]:
    yield f"{remedy.order}. {quoted(remedy.title)}"
    yield from (f"   - {name}: {quoted(getattr(remedy, name))}" for name in ("when", "cost", "verify"))


def _open(step: Open) -> Iterator[str]:
    yield f"- **{quoted(step.specialist)}** ({step.stage}): {quoted(step.because)}"
    if step.rule_out:
        yield f"  - rule out: {quoted(step.rule_out)}"
    yield from (f"  - {code(command)}" for command in step.commands)


def _unseen(story: Outline) -> Iterator[str]:
    if story.blind:
        yield from ("## Not seen", "")
        yield from (f"- {code(item.detectors)}: {quoted(item.why)} {quoted(item.unblock)}" for item in story.blind)
        yield ""
    if story.overhead:
        yield quoted(story.overhead)
