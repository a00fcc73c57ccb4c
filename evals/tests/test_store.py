"""The scenarios of the rooms: what there is of each kind, where it goes, and that no answer stands in the skill."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from torchtriage import Plan, Question, Referral, ask, read
from torchtriage_evals import store
from torchtriage_evals.labelled import Labelled
from torchtriage_evals.programs.program import program, slugs
from torchtriage_evals.scenario import SPECIALISTS, Scenario

ALL = store.scenarios()
BY_ID = {each.id: each for each in ALL}
COVERED = tomllib.loads(Path(__file__).with_name("covered.toml").read_text(encoding="utf-8"))
SPAN = 8  # words
ELSEWHERE = frozenset(
    {
        "amp-dynamic-ddp-nan",
        "autocast-inside-autocast",
        "batchnorm-thirty",
        "ddp-amp-branches-accumulation",
        "fifty-gigabytes-free",
        "four-techniques-oom",
        "hook-manager-review",
        "jump-after-resume",
        "nan-deadline-autocast-off",
        "one-percent-illegal",
        "profile-too-large",
        "residual-in-place-and-hook",
        "resume-under-fsdp-amp",
        "rnn-folklore",
        "senior-wants-amp",
        "sharded-save-and-scaler",
        "thousand-dollars-a-minute",
        "too-complicated-state",
        "two-hundred-epochs-of-files",
    }
)
"""Where `torchtriage ask` goes another way than the label. No phrase is tuned to them: that would end their worth."""


def words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9_]+", text.lower())


def spans(text: str) -> set[tuple[str, ...]]:
    said = words(text)
    return {tuple(said[start : start + SPAN]) for start in range(len(said) - SPAN + 1)}


def agrees(scenario: Scenario) -> bool:
    match ask(scenario.query):
        case Plan() as plan:
            return tuple(plan.route) in (scenario.route, *scenario.also)
        case Question():
            return scenario.question
        case Referral() as referral:
            return bool(scenario.refer_to) and referral.refer_to == scenario.refer_to


def test_there_are_scenarios_of_every_kind() -> None:
    counts = Counter(each.kind for each in ALL)
    assert len(ALL) >= 150
    least = {"route": 20, "code": 24, "evidence": 10, "advice": 80, "healthy": 12, "scope": 12, "mix": 8}
    assert {kind: counts[kind] for kind, least_of in least.items() if counts[kind] < least_of} == {}
    opening = Counter(each.triggers for each in ALL if each.kind == "trigger")
    assert min(opening[True], opening[False]) >= 30


def test_every_room_has_scenarios_that_need_it() -> None:
    routed = Counter(name for each in ALL for name in each.route)
    assert min(routed[name] for name in SPECIALISTS) >= 10


def test_there_are_families_enough_to_draw_clusters_from() -> None:
    families = Counter(each.family for each in ALL if each.kind != "trigger")
    assert len(families) >= 60
    assert max(families.values()) <= 10
    assert sum(number > 1 for number in families.values()) >= 25


def test_nothing_is_lost_by_reading_the_files_from_their_first_scenario_on() -> None:
    paths = sorted(store.ROOMS.rglob("scenarios.toml"))
    tables = [tomllib.loads(path.read_text(encoding="utf-8")) for path in paths]
    assert store.written(store.ROOMS) == [row for table in tables for row in table["evaluation"]]


def test_a_query_that_presses_already_is_not_pressed_again() -> None:
    pressing = re.compile(r"\b(one hour|1 h|deadline|tonight|tomorrow|senior|expert of|exhausted|so tired|ASAP)\b")
    assert [each.id for each in ALL if pressing.search(each.query) and each.pressures] == []


def test_queries_are_not_there_twice() -> None:
    assert [query for query, number in Counter(each.query for each in ALL).items() if number > 1] == []


def test_points_are_short_and_most_scenarios_also_say_what_does_harm() -> None:
    long = [(each.id, point.id) for each in ALL for point in each.points if len(words(point.text)) > 30]
    assert long == []
    asked = [each for each in ALL if each.kind in ("advice", "mix", "healthy") and each.points]
    harmless = [each.id for each in asked if not any(point.harmful for point in each.points)]
    assert len(harmless) <= 0.2 * len(asked), harmless


def test_no_point_stands_in_the_skill_in_the_same_words() -> None:
    root = store.ROOMS / "specialists"
    texts = [*root.glob("*/SKILL.md"), *root.glob("*/topics/*.md"), *root.glob("*/faults/*.md")]
    texts += (store.ROOMS / "interface/skillpack").rglob("*.md")
    assert len(texts) > 100
    known = set().union(*(spans(path.read_text(encoding="utf-8")) for path in texts))
    assert known
    told = [(each.id, point.id) for each in ALL for point in each.points if spans(point.text) & known]
    assert told == []


def test_this_test_of_words_can_fail() -> None:
    assert spans("a b c d e f g h i") & spans("x: B c D e f g h i")
    assert not spans("a b c d e f g h") & spans("b c d e f g h i")


@pytest.mark.parametrize(
    "each", [each for each in ALL if each.route or each.question or each.refer_to], ids=lambda each: each.id
)
def test_the_router_goes_where_the_label_says_or_is_known_not_to(each: Scenario) -> None:
    assert agrees(each) is (each.id not in ELSEWHERE)


def test_what_opens_the_skill_has_a_route() -> None:
    """Not the converse: who asks the router has opened the skill already, so it takes what it is asked for PyTorch."""
    assert [each.id for each in ALL if each.triggers and not isinstance(ask(each.query), Plan)] == []


def test_every_program_and_every_artefact_is_asked_about() -> None:
    assert {each.program for each in ALL if each.program} == set(slugs())
    assert {each.artefact for each in ALL if each.artefact} == {
        path.name for path in store.ARTEFACTS.iterdir() if path.suffix != ".md"
    }


def test_programs_that_are_sound_are_those_that_must_be_left_alone() -> None:
    asked = [each for each in ALL if each.program]
    assert [each.id for each in asked if program(each.program).sound != (each.kind == "healthy")] == []


def test_an_artefact_is_small_and_has_no_path_of_a_machine() -> None:
    for path in store.ARTEFACTS.iterdir():
        text = path.read_text(encoding="utf-8")
        assert len(text) < 8000, path.name
        assert not re.search(r"/(root|home|tmp|work)/", text), path.name


@pytest.mark.parametrize(
    ("name", "faults"),
    [
        ("allocation.log", ["fragmentation"]),
        ("backward.log", ["inplace-breaks-autograd"]),
        ("keys.log", ["keys-mismatched"]),
        ("killed.log", ["host-out-of-memory"]),
        ("norms.csv", ["gradients-exploding"]),
        ("scale.csv", ["scale-collapsing"]),
        ("watchdog.log", ["collective-timeout"]),
    ],
)
def test_an_artefact_shows_what_its_scenario_says_that_it_shows(name: str, faults: list[str]) -> None:
    assert [finding.fault.slug for finding in read([store.artefact(name)]).findings] == faults


def test_an_unknown_artefact_is_met_with_those_that_there_are() -> None:
    assert store.artefact("norms.csv").is_file()
    with pytest.raises(ValueError, match=r"no artefact 'x'; there are .*norms\.csv"):
        store.artefact("x")


def test_no_scenario_of_the_source_documents_is_lost() -> None:
    assert len(COVERED) == 129
    assert {name: ids for name, ids in COVERED.items() if not ids or set(ids) - set(BY_ID)} == {}


LABELLED = store.labelled()


def test_answers_are_labelled_of_which_about_half_make_their_point_and_some_only_look_as_if() -> None:
    plain = [each for each in LABELLED if not each.decoy]
    assert len(plain) >= 40
    assert 0.4 <= sum(each.made for each in plain) / len(plain) <= 0.6
    assert len(LABELLED) - len(plain) >= 12
    assert len({each.id for each in LABELLED}) == len(LABELLED)


def test_a_labelled_answer_belongs_to_a_point_of_a_scenario_and_quotes_what_makes_it() -> None:
    asked = {(each.query, point.text) for each in ALL for point in each.points}
    assert [each.id for each in LABELLED if (each.query, each.point) not in asked] == []
    assert [each.id for each in LABELLED if each.made != bool(each.quote)] == []


def test_a_quote_that_is_not_in_the_answer_is_refused() -> None:
    with pytest.raises(ValueError, match="'measure' does not stand in the answer"):
        Labelled("a", "slow?", "measures", "buy a card", made=True, quote="measure")
