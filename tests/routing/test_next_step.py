"""Evidence opens steps: those of the plan that waited for it, and those that nobody asked for."""

from __future__ import annotations

from pathlib import Path

import pytest
from sources import FAULTY

import torchtriage
from torchtriage.catalog.load import catalog
from torchtriage.core.case import Case
from torchtriage.core.evidence import Evidence, Place, Verdict
from torchtriage.core.finding import Finding
from torchtriage.core.plan import Plan, Question, Referral, Stage, Step
from torchtriage.routing.order import REMEDY, opened
from torchtriage.triage import begun, check, next_step

PERFORMANCE, PRECISION = "performance-profiling", "mixed-precision-and-optimization"
MEMORY, RANKS = "tensor-operations-and-memory", "distributed-training-strategies"


def shown(case: Case, *names: str) -> Case:
    """CASE with evidence for the faults and verdicts NAMES."""
    findings, verdicts = list(case.findings), list(case.verdicts)
    for name in names:
        if fault := catalog().faults.get(name):
            sign = fault.signs[0]
            evidence = Evidence(sign.detector, Place(), "seen", value=None if sign.above is None else sign.above + 1)
            findings.append(Finding(fault, (evidence,)))
        else:
            verdicts.append(Verdict(name, name, (Evidence("run/shares", Place(), "measured"),)))
    return Case(case.query, case.route, case.outcomes, tuple(findings), tuple(verdicts))


def visits(steps: tuple[Step, ...]) -> list[tuple[str, str]]:
    return [(step.specialist, step.stage.value) for step in steps]


def test_without_evidence_only_what_waits_for_nothing_is_open() -> None:
    assert visits(next_step(begun("Training is slow"))) == [(PERFORMANCE, "diagnose")]


def test_when_the_step_waits_for_data_half_precision_stays_closed_and_the_data_step_opens() -> None:
    case = shown(begun("Training is slow, should I use mixed precision?"), "input-bound")
    assert visits(next_step(case)) == [(PERFORMANCE, "diagnose"), (PERFORMANCE, "treat")]


@pytest.mark.parametrize("text", ["Training is slow", "Training is slow, should I use mixed precision?"])
def test_when_the_step_computes_half_precision_opens_though_nobody_asked_for_it(text: str) -> None:
    case = shown(begun(text), "compute-bound")
    assert visits(next_step(case)) == [(PERFORMANCE, "diagnose"), (PRECISION, "treat")]


@pytest.mark.parametrize(
    ("verdict", "opens"),
    [
        ("input-bound", [(PERFORMANCE, "treat")]),
        ("launch-bound", [(PERFORMANCE, "treat")]),
        ("compute-bound", [(PRECISION, "treat")]),
        ("bandwidth-bound", [(PRECISION, "treat"), (MEMORY, "treat")]),
        ("scale-needed", [(RANKS, "treat")]),
    ],
)
def test_each_verdict_on_speed_opens_its_own_cure(verdict: str, opens: list[tuple[str, str]]) -> None:
    steps = next_step(shown(begun("Training is slow"), verdict))
    assert sorted(visits(steps)[1:]) == opens
    assert all(verdict in step.opens_on for step in steps[1:])


def test_a_verdict_that_nothing_waits_for_opens_nothing() -> None:
    assert next_step(shown(begun("Training is slow"), "loop-bound")) == next_step(begun("Training is slow"))


def test_a_verdict_on_speed_opens_nothing_in_a_plan_of_something_else() -> None:
    case = begun("Save a checkpoint and resume training from it")
    assert next_step(shown(case, "compute-bound")) == next_step(case)


def test_a_fault_that_no_step_treats_opens_a_step_to_its_own_specialist() -> None:
    steps = next_step(shown(begun("Training is slow"), "graph-retained"))
    assert steps[-1] == Step(
        MEMORY,
        Stage.TREAT,
        REMEDY,
        examine=("torchtriage explain graph-retained",),
        opens_on=("graph-retained",),
    )


def test_a_fault_that_a_step_of_the_plan_waits_for_opens_that_step_and_no_other() -> None:
    case = shown(begun("CUDA out of memory"), "graph-retained")
    assert isinstance(case.route, Plan)
    assert next_step(case) == tuple(case.route.steps)
    assert visits(next_step(case)) == [(MEMORY, "diagnose"), (MEMORY, "treat")]


def test_several_faults_of_one_specialist_open_one_step() -> None:
    own = sorted(slug for slug, fault in catalog().faults.items() if fault.specialist == MEMORY)[:3]
    (step,) = next_step(shown(begun("Training is slow"), *own))[1:]
    assert (step.specialist, step.opens_on) == (MEMORY, tuple(own))


def test_a_fault_joins_the_cure_that_a_verdict_has_opened() -> None:
    slug = next(slug for slug, fault in sorted(catalog().faults.items()) if fault.specialist == PRECISION)
    (step,) = next_step(shown(begun("Training is slow"), "compute-bound", slug))[1:]
    assert step.specialist == PRECISION
    assert {"compute-bound", slug} <= set(step.opens_on)


@pytest.mark.parametrize(
    "route", [None, Question("What?", ("speed",)), Referral("theory", "not ours")], ids=["none", "question", "referral"]
)
def test_without_a_plan_what_was_found_opens_its_step(route: Question | Referral | None) -> None:
    case = Case(route=route)
    assert next_step(case) == ()
    assert next_step(shown(case, "compute-bound")) == ()
    assert visits(next_step(shown(case, "graph-retained"))) == [(MEMORY, "treat")]


def test_the_next_step_of_a_case_that_has_moved_is_the_same() -> None:
    case = shown(begun("Training is slow"), "compute-bound", "graph-retained")
    assert isinstance(case.route, Plan)
    homes = {finding.fault.slug: finding.fault.specialist for finding in case.findings}
    moved = Case(
        case.query,
        case.route,
        case.outcomes,
        case.findings,
        case.verdicts,
        opened=opened(case.route, case.shown, homes),
    )
    assert moved.open_steps == next_step(moved) == next_step(case)


def test_a_case_keeps_the_steps_that_were_opened_when_it_is_written_and_read() -> None:
    case = shown(begun("Training is slow"), "graph-retained")
    moved = Case(case.query, case.route, case.outcomes, case.findings, case.verdicts, opened=next_step(case)[1:])
    back = Case.decode(moved.encode())
    assert back.opened == moved.opened != ()
    assert back.encode() == moved.encode()


def test_no_fault_is_treated_by_two_of_the_steps_that_were_opened() -> None:
    case = shown(begun("Training is slow, should I use mixed precision?"), *catalog().faults, *catalog().verdicts)
    assert isinstance(case.route, Plan)
    beside = [step for step in next_step(case) if step not in case.route.steps]
    assert len(visits(tuple(beside))) == len(set(visits(tuple(beside))))
    planned = [fault for step in case.route.steps for fault in step.opens_on]
    treated = [fault for step in beside for fault in step.opens_on if fault in catalog().faults]
    assert len(treated) == len(set(treated))
    assert set(treated).isdisjoint(planned)
    assert {*treated, *planned} >= set(catalog().faults)


def test_every_opened_step_treats_and_waited_for_something_that_was_shown() -> None:
    for name in (*catalog().faults, *catalog().verdicts):
        for text in ("Training is slow", "CUDA out of memory", "the loss is NaN", "Set up DDP for 8 GPUs"):
            case = shown(begun(text), name)
            planned = begun(text).route
            assert isinstance(planned, Plan)
            for step in next_step(case):
                assert step in planned.steps or (step.stage is Stage.TREAT and name in step.opens_on), (name, text)


def test_checking_source_opens_steps_in_a_case_that_began_with_words(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(FAULTY, encoding="utf-8")
    case = check([tmp_path], begun("Save a checkpoint and resume training from it"))
    found = {finding.fault.slug: finding.fault.specialist for finding in case.findings}
    assert found
    assert {fault for step in case.opened for fault in step.opens_on} == set(found)
    assert case.open_steps == next_step(case)


def test_checking_source_alone_opens_nothing_before_it_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(FAULTY, encoding="utf-8")
    case = check([tmp_path])
    assert case.findings
    assert case.open_steps == ()
    assert next_step(case) != ()


def test_next_step_is_part_of_what_the_package_offers() -> None:
    assert torchtriage.next_step is next_step
    assert "next_step" in torchtriage.__all__
