"""Scripted agents through every arm and scorer, as Inspect runs them."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from torchtriage_evals import run, scripted
from torchtriage_evals.ledger import Price
from torchtriage_evals.run import COST, INTERRUPTED, Done
from torchtriage_evals.source import Source
from torchtriage_evals.summary import means, summary
from torchtriage_evals.trial import Arm

Ran = Callable[..., Done]
EVERYWHERE = 9  # of the scenarios: those that are asked in every arm
QUIET = (Arm.RED, Arm.PLACEBO, Arm.GREEN, Arm.OFFERED)


def test_a_perfect_agent_scores_one_in_every_arm(ran: Ran, every: Source) -> None:
    done = ran("perfect", *QUIET, source=every)
    assert {trial.score for trial in done.trials} == {1.0}
    assert len(done.trials) == done.planned == 4 * (EVERYWHERE + 1) + 2
    assert (done.stopped, done.failed) == ("", {})


def test_an_empty_agent_scores_nothing(ran: Ran) -> None:
    done = ran("empty", Arm.RED, Arm.GREEN)
    assert {trial.score for trial in done.trials} == {0.0}


def test_harmful_advice_and_needless_fixes_count_against_an_agent(ran: Ran) -> None:
    scores = means(ran("harmful").trials)
    assert scores["nan"] == pytest.approx(-0.5)
    assert scores["premise"] == -1.0
    assert scores["sound"] == -0.5
    assert scores["slow"] == 0.0


def test_only_the_arm_that_offers_a_skill_has_a_tool_for_it(ran: Ran) -> None:
    done, called = ran("perfect", *QUIET), {arm: set[str]() for arm in QUIET}
    for trial in done.trials:
        called[trial.arm] |= set(trial.calls)
    assert called == {
        Arm.RED: set(),
        Arm.PLACEBO: {"open_file"},
        Arm.GREEN: {"open_file"},
        Arm.OFFERED: {"open_skill"},
    }


def test_what_opens_a_skill_and_what_leaves_it_closed_is_counted(ran: Ran, source: Source) -> None:
    perfect = summary(ran("perfect", Arm.OFFERED), source).triggers
    assert perfect is not None
    assert (perfect.opened, perfect.rightly, perfect.wanted, perfect.scenarios) == (9, 9, 9, 11)
    aloof = summary(ran("aloof", Arm.OFFERED), source).triggers
    assert aloof is not None
    assert (aloof.opened, aloof.rightly, aloof.wanted) == (0, 0, 9)
    assert aloof.precision is None


def test_the_arm_with_tools_talks_to_our_server(ran: Ran, source: Source) -> None:
    few = msgspec.structs.replace(source, scenarios=source.scenarios[-1:])
    done = ran("perfect", Arm.TOOLS, source=few)
    assert [trial.calls for trial in done.trials] == [("ask",)]
    assert done.trials[0].agent.tokens_in > 500  # what the server has answered was read


def test_the_weak_agent_is_better_with_the_skill_and_no_better_with_its_length(ran: Ran) -> None:
    done = ran("weak", Arm.RED, Arm.PLACEBO, Arm.GREEN, epochs=4)
    scores = {arm: means(trial for trial in done.trials if trial.arm is arm) for arm in QUIET[:3]}
    mean = {arm: sum(each.values()) / len(each) for arm, each in scores.items()}
    assert mean[Arm.GREEN] > mean[Arm.RED] + 0.15
    assert scores[Arm.PLACEBO] == scores[Arm.RED]


def test_a_judge_that_says_yes_is_refused_and_its_points_are_unscored_not_failed(ran: Ran) -> None:
    done = ran("perfect", judge="mockllm/yes")
    assert done.agreement is not None
    assert not done.agreement.accepted
    assert done.agreement.fooled == done.agreement.decoys == 6
    scores = {trial.scenario: trial for trial in done.trials}
    assert scores["premise"].score is None
    assert scores["premise"].unscored == {"the judge was not accepted": 2}
    assert scores["nan"].parts == {"points": 1.0}  # a pattern needs no judge
    assert scores["slow"].score == 1.0


def test_a_judge_whose_replies_cannot_be_read_is_refused(ran: Ran) -> None:
    done = ran("perfect", judge="mockllm/babble")
    assert done.agreement is not None
    assert (done.agreement.accepted, done.agreement.unscored, done.agreement.alpha) == (False, 12, None)


def test_without_a_judge_what_no_pattern_decides_is_unscored(ran: Ran) -> None:
    done = ran("perfect", judge=None)
    assert done.agreement is None
    assert {why for trial in done.trials for why in trial.unscored} == {"no judge was named"}


def test_a_cost_limit_ends_the_run_with_what_it_has(ran: Ran) -> None:
    prices = {name: Price(10.0, 10.0) for name in ("mockllm/perfect", "mockllm/judge")}
    whole = ran("perfect", prices=prices)
    assert whole.stopped == ""
    dear = max(trial.agent.dollars or 0.0 for trial in whole.trials)
    paid = sum((t.agent.dollars or 0.0) + (t.judge.dollars or 0.0) for t in whole.trials) + (
        whole.judging.dollars or 0.0
    )
    done = ran("perfect", prices=prices, cost_limit=0.7 * paid)
    spent = sum((t.agent.dollars or 0.0) + (t.judge.dollars or 0.0) for t in done.trials) + (
        done.judging.dollars or 0.0
    )
    assert done.stopped == COST
    assert 0 < len(done.trials) < done.planned
    assert spent <= 0.7 * paid + 2 * dear


@pytest.mark.usefixtures("interruptible")
def test_an_interrupted_run_keeps_what_it_has_and_says_so(ran: Ran, monkeypatch: pytest.MonkeyPatch) -> None:
    answered, calls = scripted.perfect, iter(range(100))

    def interrupted(scenario: scripted.Scenario) -> str:
        if next(calls) == 10:
            signal.raise_signal(signal.SIGINT)
        return answered(scenario)

    monkeypatch.setattr(scripted, "perfect", interrupted)
    monkeypatch.setattr(run, "AT_ONCE", 1)
    done = ran("perfect", Arm.RED, Arm.GREEN)
    assert done.stopped == INTERRUPTED
    assert 0 < len(done.trials) < done.planned


def test_an_agent_that_fails_is_no_trial_and_its_error_is_told(ran: Ran, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(scenario: scripted.Scenario) -> str:
        raise ConnectionError("the server has gone")

    monkeypatch.setattr(scripted, "perfect", failing)
    done = ran("perfect")
    assert done.trials == ()
    assert done.failed == {"ConnectionError('the server has gone')": EVERYWHERE}


def test_programs_are_left_out_and_named_where_torch_is_not(
    ran: Ran, every: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torchtriage_evals.legs.find_spec", lambda name: None)
    done = ran("perfect", source=every)
    assert "layers" not in {trial.scenario for trial in done.trials}
    assert done.left_out["programs are not run without torch: pip install torch"] == 1


def test_trials_are_written_as_they_are_scored(ran: Ran, tmp_path: Path) -> None:
    done = ran("perfect")
    assert len((tmp_path / "run/trials.jsonl").read_text().splitlines()) == len(done.trials)
