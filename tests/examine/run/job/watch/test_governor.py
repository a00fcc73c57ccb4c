from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from torchtriage.examine.run.job.events import Start
from torchtriage.examine.run.job.job import Job
from torchtriage.examine.run.job.record.writer import Writer
from torchtriage.examine.run.job.watch.governor import (
    BUDGET,
    DEPTH,
    EARLY,
    FIRST,
    LEAST,
    ORDERLY,
    SUSPICIONS,
    WINDOW,
    Governor,
)

STEP = 10_000_000  # nanoseconds


def watched(sampled: int, steps: int = 2000, always: int = 0, budget: float = BUDGET) -> list[bool]:
    """Of STEPS steps that take 10 ms, which were watched; SAMPLED and ALWAYS nanoseconds are spent in each that is."""
    governor, seen = Governor(), []
    governor.budget = budget
    governor.sampled.add("room/sampled")
    for _ in range(steps):
        seen.append(governor.watching)
        governor.book("room/always", always)
        governor.book("room/sampled", sampled * governor.watching)
        governor.ended(STEP)
    return seen


def windows(seen: list[bool]) -> set[int]:
    """The lengths of all whole windows after the first steps."""
    marks = "".join("x" if each else " " for each in seen[FIRST:]).rstrip("x")
    return {len(window) for window in marks.split()}


def test_the_first_steps_are_all_watched() -> None:
    assert all(watched(STEP)[:FIRST])


def test_probes_that_cost_next_to_nothing_watch_every_step() -> None:
    assert all(watched(STEP // 1000))


@pytest.mark.parametrize("budget", [BUDGET, BUDGET / 4])
@pytest.mark.parametrize("cost", [STEP // 20, STEP // 5, STEP])
def test_after_the_first_steps_dear_probes_watch_windows_that_the_budget_pays_for(cost: int, budget: float) -> None:
    seen = watched(cost, steps=20_000, budget=budget)
    later = sum(seen[FIRST:])
    assert later * cost <= budget * len(seen) * STEP + WINDOW * cost  # the first steps are not counted
    assert {length % WINDOW for length in windows(seen)} == {0}


def test_what_always_runs_is_paid_first_and_leaves_the_sampled_probes_a_little() -> None:
    seen = watched(STEP // 100, steps=20_000, always=STEP // 20)
    assert 0.8 < sum(seen[FIRST:]) / 100 / len(seen) / (LEAST * BUDGET) < 1.2


def test_a_window_that_opens_is_told_once() -> None:
    governor, opened = Governor(), []
    governor.sampled.add("room/sampled")
    for _ in range(1000):
        governor.book("room/sampled", STEP // 10 * governor.watching)
        governor.ended(STEP)
        opened.append((governor.opened, governor.watching))
    assert all(watching for told, watching in opened if told)
    assert any(told for told, _ in opened)
    assert not any(first and second for (first, _), (second, _) in itertools.pairwise(opened))


def test_a_suspicion_is_followed_up_at_once_whatever_it_costs_but_not_for_ever() -> None:
    governor, lengths = Governor(), []
    governor.sampled.add("room/sampled")
    for step in range(20_000):
        if step % 400 == 399:
            governor.suspect()
            lengths.append(0)
        if lengths:
            lengths[-1] += governor.watching
        governor.book("room/sampled", STEP * governor.watching)
        governor.ended(STEP)
    assert all(DEPTH <= length < 3 * DEPTH for length in lengths[:SUSPICIONS])
    assert sum(lengths[SUSPICIONS:]) < 0.02 * 400 * len(lengths)


def test_a_job_that_begins_to_train_late_has_its_first_steps_then() -> None:
    governor, seen = Governor(), []
    governor.sampled.add("room/sampled")
    for step in range(1000):
        if step == 500:
            governor.anew()
        seen.append(governor.watching)
        governor.book("room/sampled", STEP * governor.watching)
        governor.ended(STEP)
    assert sum(seen[FIRST:500]) < FIRST
    assert all(seen[501 : 501 + FIRST])
    assert sum(seen[501 + FIRST :]) < FIRST


def test_after_the_first_steps_a_focus_leaves_the_budget_to_some_rooms() -> None:
    governor = Governor()
    governor.sampled = {"asked/probe", "other/probe"}
    governor.focus = frozenset({"asked"})
    assert governor.sees("asked/probe")
    assert governor.sees("other/probe")
    for _ in range(FIRST):
        governor.ended(STEP)
    assert governor.sees("asked/probe")
    assert not governor.sees("other/probe")


def test_who_looks_at_the_order_of_calls_sees_the_first_steps_and_one_window_in_eight() -> None:
    governor, seen = Governor(), []
    governor.sampled, governor.orderly = {"room/values", "room/order"}, {"room/order"}
    for _ in range(20_000):
        seen.append((governor.sees("room/values"), governor.sees("room/order")))
        governor.book("room/values", STEP // 5 * governor.watching)
        governor.ended(STEP)
    assert seen[:FIRST] == [(True, True)] * FIRST
    values, order = (sum(each) for each in zip(*seen[FIRST:], strict=True))
    assert order == pytest.approx(values / ORDERLY, rel=0.1)


def test_at_a_suspicion_who_looks_at_the_order_of_calls_sees_the_steps_as_well() -> None:
    governor = Governor()
    governor.sampled, governor.orderly = {"room/order"}, {"room/order"}
    for _ in range(20_000):
        governor.book("room/order", STEP // 5 * governor.watching)
        governor.ended(STEP)
        if governor.windows % ORDERLY and not governor.watching:
            break
    governor.suspect()
    governor.ended(STEP)
    assert governor.sees("room/order")


def test_a_forked_child_begins_with_all_probes_again(tmp_path: Path) -> None:
    job, seen = Job(Writer(str(tmp_path), lambda: 0, Start)), []
    job.placing = "room/sampled"
    job.sampled()
    job.on("batch", lambda *_: seen.append(job.governor.watching))
    job.governor.watching = False
    job.listeners.choose()
    job.fire("batch")
    job.forked()
    job.fire("batch")
    assert seen == [True]


@pytest.mark.parametrize(("cost", "every"), [(STEP // 100, 16), (STEP // 2, 100), (2 * STEP, 400)])
def test_after_the_early_steps_spaced_probes_see_no_more_than_half_of_the_budget_pays_for(
    cost: int, every: int
) -> None:
    governor = Governor()
    governor.spaced.add("room/spaced")
    governor.watching, seen = False, 0
    for step in range(50_000):
        governor.reaches(step)
        if governor.struck:
            governor.book("room/spaced", cost)
            seen += step >= EARLY
        governor.ended(STEP)
        governor.watching = False
    assert (50_000 - EARLY) / seen == pytest.approx(every, rel=0.1)


def test_with_a_quarter_of_the_budget_spaced_probes_see_a_quarter_of_the_steps() -> None:
    governor = Governor()
    governor.spaced.add("room/spaced")
    governor.watching, governor.budget = False, BUDGET / 4
    seen = []
    for step in range(100, 200):
        governor.reaches(step)
        seen += [step] if governor.sees("room/spaced") else []
    assert seen == [112, 128, 144, 160, 176, 192]


@pytest.mark.parametrize(
    ("begin", "seen"), [(100, {100, 104, 108, 112, 116}), (EARLY, {EARLY, EARLY + 16})], ids=["early", "late"]
)
def test_spaced_probes_see_steps_some_way_apart_and_all_that_are_watched(begin: int, seen: set[int]) -> None:
    governor = Governor()
    governor.spaced.add("room/spaced")
    assert governor.sees("room/spaced")
    governor.watching = False
    found = set()
    for step in range(begin, begin + 20):
        governor.reaches(step)
        found |= {step} if governor.sees("room/spaced") else set()
    assert found == seen


def test_a_step_of_spaced_probes_is_told_to_them_and_to_those_that_are_always_on(tmp_path: Path) -> None:
    job, told = Job(Writer(str(tmp_path), lambda: 0, Start)), []
    for name, speed in (("always", None), ("spaced", job.spaced), ("sampled", job.sampled)):
        job.placing = f"room/{name}"
        if speed is not None:
            speed()
        job.on("iterated", lambda step, name=name: told.append((name, step)))
    job.governor.watching = False
    for step in (3, 4, 5):
        job.governor.reaches(step)
        job.listeners.choose()
        job.fire("iterated", step)
    assert told == [("always", 3), ("always", 4), ("spaced", 4), ("always", 5)]
