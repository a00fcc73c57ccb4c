"""What a report says, in every form, and what it refuses to say."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from torchtriage import TriageError
from torchtriage_evals import console, page, publish, words
from torchtriage_evals.judge import Agreement
from torchtriage_evals.report import About, Report, read, write
from torchtriage_evals.run import INTERRUPTED, Done
from torchtriage_evals.scenario import Scenario
from torchtriage_evals.source import Source
from torchtriage_evals.summary import Results, summary
from torchtriage_evals.trial import Arm, Spent, Trial

NASTY = "</title><script>alert(1)</script>[bold]{{ 7 * 7 }}"
ABOUT = About(
    simulated=False,
    date="2026-11-23",
    model="maker/model",
    judge=None,
    verb="compare",
    epochs=2,
    scenarios=12,
    families=12,
    skill="5e11",
    scenarios_hash="a5ed",
    cost_limit=None,
    versions={"torchtriage": "0.1.0"},
)
SCENARIOS = tuple(Scenario(f"s{n}", f"f{n}", "route", "q", question=True) for n in range(12))


def trial(number: int, arm: Arm, epoch: int, score: float | None, pressure: str | None = None) -> Trial:
    used = Spent(1000 if arm is Arm.GREEN else 100, 10, 0.01)
    kind = "route" if number % 2 else "scope"
    return Trial(
        scenario=f"s{number}",
        family=f"f{number}",
        kind=kind,
        arm=arm,
        pressure=pressure,
        epoch=epoch,
        score=score,
        agent=used,
    )


TRIALS = tuple(
    trial(n, arm, epoch, (0.25 if arm is Arm.RED else 0.75 if n else 0.0) + 0.1 * epoch)
    for n in range(12)
    for arm in (Arm.RED, Arm.GREEN)
    for epoch in (1, 2)
)


def results(trials: tuple[Trial, ...] = TRIALS, **changed: object) -> Results:
    given = {"planned": len(trials), "stopped": "", "failed": {}, "left_out": {}, "agreement": None, "judging": Spent()}
    return summary(Done(trials=trials, **(given | changed)), Source(SCENARIOS))  # type: ignore[arg-type]


def report(trials: tuple[Trial, ...] = TRIALS, **changed: object) -> Report:
    return Report(about=ABOUT, results=results(trials, **changed))


def printed(given: Report) -> str:
    out = StringIO()
    console.show(given, Console(file=out, width=120))
    return out.getvalue()


def test_the_first_sentence_says_what_green_less_red_is() -> None:
    said = printed(report())
    assert re.match(r"Better: GREEN less RED \+0\.44 \[\+0\.\d\d, \+0\.\d\d\]\.", said)
    assert re.search(r"green − red +12 +\+0\.44 \[.*\] +11 +1 ", said)
    assert "Got worse: s0 (-0.25)" in said


def test_points_for_a_thousand_more_tokens_are_counted_on_the_same_scenarios() -> None:
    found = results().comparisons[0]
    assert found.points_per_1000_tokens == pytest.approx(found.whole.mean / 0.9)
    assert words.worth(None) == "–"


def test_an_interval_that_holds_nothing_shows_no_difference() -> None:
    alike = tuple(msgspec.structs.replace(one, score=0.5) for one in TRIALS)
    assert printed(report(alike)).startswith("No difference is shown: GREEN less RED +0.00 [+0.00, +0.00].")


def test_epochs_are_averaged_before_anything_is_compared() -> None:
    assert results().scores["red"]["s3"] == pytest.approx(0.4)
    assert results().comparisons[0].whole.scenarios == 12


def test_pressed_is_compared_with_calm_in_each_arm_and_for_each_pressure() -> None:
    pressed = tuple(
        trial(n, arm, 1, 0.3, "time" if n % 2 else "authority") for n in range(12) for arm in (Arm.RED, Arm.GREEN)
    )
    found = {(one.before, one.after): one for one in results(TRIALS + pressed).comparisons}
    assert set(found) == {
        ("red", "green"),
        ("red, pressed", "green, pressed"),
        ("red", "red, pressed"),
        ("green", "green, pressed"),
    }
    drop = found["green", "green, pressed"]
    assert drop.whole.mean < -0.3
    assert set(drop.parts) == {"time", "authority"}


def test_what_was_not_seen_stands_above_the_figures() -> None:
    judge = Agreement(answers=10, unscored=0, agreed=5, alpha=0.1, decoys=5, fooled=5)
    given = report(planned=90, stopped=INTERRUPTED, failed={"gone": 3}, left_out={"no torch": 4}, agreement=judge)
    said = printed(msgspec.structs.replace(given, about=msgspec.structs.replace(ABOUT, simulated=True)))
    for line in (
        "! Simulated: a script answered or judged.",
        f"! Partial: {INTERRUPTED} after 48 of 90 trials.",
        "! The judge was not accepted: agreement (alpha) 0.10",
        "! 4 not asked: no torch.",
        "! 3 failed: gone.",
    ):
        assert line in said
        assert said.index(line) < said.index("tokens each")


def test_trials_without_a_score_are_counted_and_in_no_mean() -> None:
    odd = msgspec.structs.replace(
        TRIALS[0], score=None, unscored={"no judge was named": 2}, stopped="no answer in 16 turns"
    )
    given = report((odd, *TRIALS[1:]))
    assert given.results.unscored == {"no judge was named": 2}
    assert "2 without a score: no judge was named." in printed(given)
    assert "1 cut short: no answer in 16 turns." in printed(given)
    assert given.results.scores["red"]["s0"] == pytest.approx(0.45)


def test_nothing_scored_is_said(tmp_path: Path) -> None:
    given = report(())
    assert printed(given).startswith("Nothing was scored.")
    write(given, tmp_path)
    assert "Nothing was scored." in (tmp_path / "report.html").read_text()


def test_equal_trials_give_equal_results_and_the_date_stands_elsewhere(tmp_path: Path) -> None:
    for name, date in (("a", "2026-11-23"), ("b", "2027-01-01")):
        (tmp_path / name).mkdir()
        write(msgspec.structs.replace(report(), about=msgspec.structs.replace(ABOUT, date=date)), tmp_path / name)
    first, second = (json.loads((tmp_path / name / "report.json").read_text()) for name in "ab")
    assert json.dumps(first["results"]) == json.dumps(second["results"])
    assert first["about"]["date"] != second["about"]["date"]
    assert "2026" not in json.dumps(first["results"])


def test_a_report_is_read_as_it_was_written(tmp_path: Path) -> None:
    write(report(), tmp_path)
    assert read(tmp_path / "report.json") == report()


@pytest.mark.parametrize(("content", "said"), [(None, "cannot be read"), (b"{}", "no report"), (b"\xff", "no report")])
def test_what_is_no_report_is_refused(tmp_path: Path, content: bytes | None, said: str) -> None:
    path = tmp_path / "report.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(TriageError, match=said):
        read(path)


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_the_page_needs_nothing_else_and_escapes_what_came_from_models() -> None:
    about = msgspec.structs.replace(ABOUT, model=NASTY, judge=NASTY)
    given = Report(about=about, results=results(failed={NASTY: 1}, planned=50))
    text = page.render(given)
    tags = Tags()
    tags.feed(text)
    names = [name for name, _ in tags.found]
    assert "script" not in names
    assert names.count("title") == 1
    assert not [name for name, attrs in tags.found if {"src", "href", "style", "onclick"} & set(attrs)]
    policy = next(attrs["content"] for name, attrs in tags.found if attrs.get("http-equiv"))
    assert policy is not None
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "{{ 7 * 7 }}" in text
    assert "&lt;/title&gt;" in text
    assert "[bold]" in printed(given)


def test_the_page_shows_every_difference_group_and_scenario() -> None:
    text = page.render(report())
    assert text.count("<svg") == 3  # green - red, and its two kinds
    assert "Scenarios that got worse" in text
    assert all(f">s{n}<" in text for n in range(12))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "evaluation.md"
    path.write_text(f"| a |\n|---|\n{publish.END}\nrest\n")
    return path


def published(given: Report, folder: Path, table: Path) -> str:
    write(given, folder)
    return publish.add(folder / "report.json", table)


def test_a_whole_run_is_added_to_the_table_once(tmp_path: Path, table: Path) -> None:
    assert published(report(), tmp_path, table).startswith("Added")
    lines = table.read_text().splitlines()
    assert lines[2].startswith(
        "| 2026-11-23 | maker/model | none | 0.1.0 (5e11) | 12 × 2 (a5ed) | 0.400 | – | 0.838 | +0.44 ["
    )
    assert lines[2].endswith(" | 11 / 1 | +0.486 | $0.4800 |")
    assert lines[3] == publish.END
    assert published(report(), tmp_path, table).endswith("has this run already.")
    assert len(table.read_text().splitlines()) == len(lines)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (msgspec.structs.replace(report(), about=msgspec.structs.replace(ABOUT, simulated=True)), "it is simulated"),
        (report(stopped=INTERRUPTED), "it is partial"),
        (report(planned=99), "it is partial, 48 of 99 trials"),
        (report(agreement=Agreement(answers=9, unscored=9, agreed=0, alpha=None, decoys=3, fooled=0)), "judge was not"),
        (report(TRIALS[:8]), "no difference of green and red with an interval"),
        (report(tuple(one for one in TRIALS if one.arm is Arm.RED)), "no difference of green and red"),
    ],
)
def test_a_run_that_shows_nothing_is_not_published(tmp_path: Path, table: Path, given: Report, said: str) -> None:
    before = table.read_text()
    with pytest.raises(TriageError, match=said):
        published(given, tmp_path, table)
    assert table.read_text() == before


def test_a_page_without_a_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TriageError, match="no line"):
        published(report(), tmp_path, tmp_path / "other.md")


def test_the_documentation_has_the_table_and_no_simulated_row() -> None:
    text = Path(__file__).parents[2].joinpath("docs/evaluation.md").read_text(encoding="utf-8")
    assert text.count(publish.END) == 1
    rows = [line for line in text.splitlines() if line.startswith("| 20")]
    columns = text.split(publish.END)[0].splitlines()[-2 - len(rows)].count("|")
    assert publish.row(report()).count("|") == columns
    assert not [line for line in rows if "mockllm" in line]
