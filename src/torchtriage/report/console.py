"""The report for a terminal: Verdict, Why, Next, and what was not seen."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from io import StringIO

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from torchtriage.core.case import Case
from torchtriage.core.fault import Remedy
from torchtriage.report.ending import Ending
from torchtriage.report.figure import figure
from torchtriage.report.measures import Share
from torchtriage.report.outline import Given, Open, Outline, Sight, Trouble, outline
from torchtriage.report.paper import PLAIN, Paper
from torchtriage.report.rows import ranks, standstill
from torchtriage.report.text import count
from torchtriage.report.unseen import Blind

# Every piece of text is a rich Text: brackets in what a job said are never read as markup.
_TONES = {
    "error": "bold red",
    "warning": "bold yellow",
    "info": "bold cyan",
    "good": "bold green",
    "unknown": "bold magenta",
}
_WORDS = {"good": "ok", "unknown": "unseen"}
_BLOCKS = " ▏▎▍▌▋▊▉█"
_MORE = "torchtriage explain NAME: the cost of every remedy, and how to verify it"
_GAPS = re.compile(r"\n{3,}")


def render(case: Case, paper: Paper = PLAIN) -> str:
    """CASE as console text of the paper's width, with or without colours."""
    story = outline(case)
    parts = [*_part("Verdict", _verdict(story)), *_part("Why", _why(story))]
    if story.rehearsal:
        parts += _part(story.rehearsal.title, _named(story.rehearsal.rows))
    for tried in story.tried:
        parts += _part(tried.title, _named(tried.rows))
    parts += [
        *_part("Where the ranks stand", standstill(story)),
        *_part("Ranks", ranks(story, max(paper.width, 40) - 2)),
    ]
    parts += [*_part("Next", _next(story)), *_part("Not seen", map(_blind, story.blind)), *_part("", _overhead(story))]
    return _written(Group(*parts), paper)


def _written(what: RenderableType, paper: Paper) -> str:
    out = StringIO()
    console = Console(
        file=out,
        width=max(paper.width, 40),
        force_terminal=paper.color,
        color_system="standard" if paper.color else None,
        no_color=not paper.color,
        legacy_windows=False,
        markup=False,
        emoji=False,
        highlight=False,
        _environ={},
    )
    console.print(what)
    lines = "\n".join(line.rstrip() for line in out.getvalue().splitlines())
    return _GAPS.sub("\n\n", lines).rstrip("\n") + "\n"


def _part(title: str, body: Iterable[RenderableType]) -> Iterator[RenderableType]:
    lines = list(body)
    if lines:
        if title:
            yield Text(title, "bold")
        yield Padding(Group(*lines), (0, 0, 1, 2))


def _verdict(story: Outline) -> Iterator[RenderableType]:
    yield _beside(Text(_WORDS.get(story.tone, story.tone), _TONES[story.tone]), Text(story.verdict))


def _beside(left: Text, *right: RenderableType) -> RenderableType:
    grid = Table.grid(padding=(0, 2, 0, 0), expand=False)
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(left, Group(*right))
    return grid


def _why(story: Outline) -> Iterator[RenderableType]:
    if story.ending:
        yield from _ending(story.ending)
    if story.pace:
        yield Text(story.pace)
    if story.shares:
        yield Padding(_bars(story.shares), (0, 0, 0 if story.memory else 1, 0))
    if story.memory:
        yield Padding(Text(story.memory), (0, 0, 1, 0))
    if story.course:
        yield Padding(Text(story.course), (0, 0, 1, 0))
    for given in story.given:
        yield from _given(given)
    for trouble in story.troubles:
        yield from _trouble(trouble)


def _named(rows: Iterable[tuple[str, str]]) -> Iterator[RenderableType]:
    """Two columns: what each line is about, and the line."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for name, said in rows:
        grid.add_row(Text(name, "dim"), Text(said))
    yield grid


def _ending(ending: Ending) -> Iterator[RenderableType]:
    yield _beside(Text("ended", _TONES["error"]), Text(ending.title, "bold"))
    body = [Text(ending.place, "underline")]
    body += [Text(f"│ {ending.excerpt}", "dim", no_wrap=True, overflow="ellipsis")] if ending.excerpt else []
    body += [Text(each) for each in ending.message]
    body += [Text(ending.met)] if ending.met else []
    yield Padding(Group(*body), (0, 0, 1, 2))


def _bars(shares: Iterable[Share]) -> RenderableType:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True)
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(justify="right", no_wrap=True)
    for item in shares:
        if item.share > 0:
            seconds = "" if item.seconds is None else figure(item.seconds, "s")
            bar = Text(_bar(item.share), "cyan")
            grid.add_row(Text(item.phase), bar, Text(figure(item.share, "share")), Text(seconds, "dim"))
    return grid


def _bar(share: float) -> str:
    """24 columns for the whole step, in eighths of a column; what is there at all is seen."""
    whole, eighths = divmod(max(1, round(share * 24 * 8)), 8)
    return (_BLOCKS[8] * whole + _BLOCKS[eighths]).ljust(24)[:24]


def _given(given: Given) -> Iterator[RenderableType]:
    yield _beside(Text("measured", _TONES["good"]), Text.assemble((given.slug, "bold"), f"  {given.title}"))
    yield Padding(Group(*(part for sight in given.sights for part in _sight(sight))), (0, 0, 1, 2))


def _trouble(trouble: Trouble) -> Iterator[RenderableType]:
    title = Text.assemble((trouble.slug, "bold"), f"  {trouble.title}")
    yield _beside(Text(trouble.severity, _TONES[trouble.severity]), title)
    body = [part for sight in trouble.sights for part in _sight(sight)]
    if trouble.more:
        body.append(Text(f"and {count(trouble.more, 'more place')}, in the case", "dim"))
    yield Padding(Group(*body), (0, 0, 1, 2))


def _sight(sight: Sight) -> Iterator[RenderableType]:
    for spot in sight.spots:
        yield Text(spot.place, "underline")
        if spot.excerpt:
            yield Padding(Text(f"│ {spot.excerpt}", "dim", no_wrap=True, overflow="ellipsis"), (0, 0, 0, 2))
    yield Padding(Text(sight.fact), (0, 0, 0, 2))
    if sight.measure:
        yield Padding(Text(sight.measure, "bold"), (0, 0, 0, 2))


def _next(story: Outline) -> Iterator[RenderableType]:
    for each in story.advice:
        yield from (_beside(Text("-"), Text(each)), Text(""))
    for trouble in story.troubles:
        yield Text(trouble.slug, "bold")
        for remedy in trouble.remedies:
            yield Padding(_remedy(remedy), (0, 0, 0, 2))
        yield Text("")
    if any(len(trouble.remedies) > 1 for trouble in story.troubles):
        yield from (Text(_MORE, "dim"), Text(""))
    yield from (_beside(Text("-"), Text(option)) for option in story.options)
    if story.steps:
        yield Text("Open steps of the plan", "bold")
        yield from (Padding(_open(step), (0, 0, 0, 2)) for step in story.steps)


def _remedy(remedy: Remedy) -> RenderableType:
    """The first in full; of the others what they are and when they are right."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for name in ("when", "cost", "verify") if remedy.order == 1 else ("when",):
        value = getattr(remedy, name)
        if name != "cost" or value != "None.":
            grid.add_row(Text(f"{name:<6}", "dim"), Text(value))
    return _beside(Text(f"{remedy.order}."), Text(remedy.title), grid)


def _open(step: Open) -> RenderableType:
    body = [Text(f"{step.specialist} ({step.stage}): {step.because}")]
    if step.rule_out:
        body.append(Text(f"rule out: {step.rule_out}", "dim"))
    body += [Text(f"$ {command}", "cyan") for command in step.commands]
    return _beside(Text("-"), *body)


def _blind(blind: Blind) -> RenderableType:
    return _beside(Text("-"), Text.assemble((blind.detectors, "bold"), f": {blind.why}"), Text(blind.unblock, "dim"))


def _overhead(story: Outline) -> Iterator[RenderableType]:
    if story.overhead:
        yield Text(story.overhead, "dim")
