"""bench/accelerated.py: what a ledger says of its steps, and how a case is held against it."""

from __future__ import annotations

from typing import Any

import pytest
from simulated import jobs as held
from simulated.jobs import Job, drawn
from simulated.judge import Figure, Judged, backed, measured
from simulated.truth import Truth, covered

from torchtriage.catalog.load import catalog
from torchtriage.core.case import Case
from torchtriage.core.evidence import Evidence, Place, Verdict
from torchtriage.core.finding import Finding
from torchtriage.simulation import Allocation, Collective, Copy, Costs, Kernel, Ledger, Synchronisation

LAUNCH, STEPS = 10, 12
SCRIPT = "for x in loader:\n    y = model(x)\n    print(y.item())\n"


def truth_of(
    kernel: int, nap: int = 0, wait: bool = False, in_loader: bool = False, copy: int = 0, launches: int = 5
) -> Truth:
    """A host that, in each step, naps, copies a batch and waits for it, launches kernels, and may read a number."""
    host = device = 0
    kernels, copies, waits, naps, marks = [], [], [], [], [0]
    for step in range(STEPS):
        if nap:
            naps.append({"begun": host, "ended": host + nap, "line": 1, "loader": in_loader})
            host += nap
        if copy:
            host += LAUNCH
            start, device = max(host, device), max(host, device) + copy
            copies.append(Copy(step, "host-to-device", 0, 0, host, start, device, 100, False, False, "train.py", 1))
            waits.append(Synchronisation(step, "copy_", 0, host, device, "train.py", 1))
            host = device
        for _ in range(launches):
            host += LAUNCH
            start, device = max(host, device), max(host, device) + kernel
            kernels.append(Kernel(step, "addmm", 0, 0, host, start, device, 4, 8))
        if wait:
            waits.append(Synchronisation(step, "item", 0, host, max(host, device), "train.py", 3))
            host = max(host, device)
        marks.append(host)
    ledger = Ledger(tuple(kernels), tuple(copies), tuple(waits))
    journal = {"marks": marks, "naps": naps, "error": None, "line": None}
    return Truth(ledger, journal, Costs.free(launch=LAUNCH))


@pytest.mark.parametrize(
    ("job", "limit", "gain"),
    [
        ({"kernel": 100}, "kernel", 0.9),
        ({"kernel": 1}, "launch", 0.9),
        ({"kernel": 100, "nap": 400, "wait": True}, "sync", 0.43),
        ({"kernel": 10, "nap": 400, "wait": True, "in_loader": True}, "input", 0.85),
        ({"kernel": 10, "nap": 400, "wait": True}, "loop", 0.85),
        ({"kernel": 20, "copy": 300}, "transfer", 0.75),
    ],
)
def test_what_limits_the_steps_is_what_they_are_shorter_without(job: dict[str, Any], limit: str, gain: float) -> None:
    truth = truth_of(**job)
    assert truth.fidelity < 0.001
    assert truth.limit == limit
    assert truth.gains[limit] == pytest.approx(gain, abs=0.03)


def test_a_nap_that_the_device_hides_costs_nothing() -> None:
    truth = truth_of(kernel=100, nap=300)
    assert truth.gains["loop"] == pytest.approx(0, abs=0.01)
    assert truth.busy == pytest.approx(1, abs=0.01)


def test_waits_stand_at_their_lines_and_copies_to_the_device_are_apart() -> None:
    truth = truth_of(kernel=100, wait=True, copy=300)
    assert truth.waits == {3: pytest.approx(460)}
    assert truth.transfers == {1: pytest.approx(300)}
    assert truth.copied == 100
    assert not truth.pinned
    assert truth.copying == pytest.approx(300 / truth.period)


def test_a_rank_that_waits_for_another_loses_that_and_no_more() -> None:
    rows, marks, host = [], [0], 0
    for step in range(STEPS):
        host += LAUNCH
        rows.append(Collective(step, "allreduce", 0, 2, 4, host, host, host + 200, host + 250))
        host += 250
        marks.append(host)
    waits = tuple(Synchronisation(each.step, "device", 0, each.launched, each.end, "train.py", 3) for each in rows)
    journal = {"marks": marks, "naps": [], "error": None, "line": None}
    truth = Truth(Ledger(collectives=tuple(rows), synchronisations=waits), journal, Costs.free(launch=LAUNCH))
    assert truth.lateness == pytest.approx(200)
    assert truth.gains["peer"] == pytest.approx(200 / 260)
    assert truth.gains["communication"] == pytest.approx(50 / 260)
    assert truth.limit == "peer"


def test_memory_at_the_peak_is_told_from_what_outlives_the_step() -> None:
    rows: list[tuple[int, str, int, int, int]] = [(0, "alloc", 1, 600, 600)]
    for step in range(STEPS):
        rows += [(step, "alloc", 2, 400, 1000), (step, "free", 2, 400, 600)]
    allocations = tuple(
        Allocation(step, action, 0, 0, 0, address, size, used, 2000, ()) for step, action, address, size, used in rows
    )
    truth = Truth(Ledger(allocations=allocations), truth_of(1).journal, Costs.free())
    assert (truth.peak, truth.resting, truth.growth) == (1000, 0.6, 0.0)


@pytest.mark.parametrize(
    ("spans", "share"), [([], 0), ([(0, 10)], 1), ([(0, 4), (2, 5)], 0.5), ([(-5, 2), (8, 20)], 0.4)]
)
def test_what_is_covered_twice_counts_once(spans: list[tuple[int, int]], share: float) -> None:
    assert covered(spans, 0, 10) == pytest.approx(share)


def job_of(**fields: Any) -> Job:
    return Job("a", SCRIPT, "sync-bound", {}, slugs=frozenset({"sync-bound"}), lines=(3,), **fields)


def case_of(*slugs: str, verdicts: tuple[str, ...] = (), line: int = 3, value: float = 0.45, fact: str = "f") -> Case:
    known = catalog().faults
    made = [
        Finding(known[slug], (Evidence(known[slug].signs[-2].detector, Place("train.py", line), fact, value),))
        for slug in slugs
    ]
    given = [Verdict(name, name, (Evidence("run/x", Place(), "f"),)) for name in verdicts]
    return Case(findings=tuple(made), verdicts=tuple(given), measurements={"step_time": {"median": 9.5e-7}})


SYNC = {"kernel": 100, "nap": 400, "wait": True}


@pytest.mark.parametrize(
    ("case", "right", "placed"),
    [
        (case_of("sync-bound"), True, True),
        (case_of("sync-bound", line=2), True, False),
        (case_of("sync-bound", verdicts=("loop-bound",)), True, True),
        (case_of("sync-bound", verdicts=("communication-bound",)), False, True),
        (case_of("transfer-bound"), False, False),
        (case_of(), False, False),
        (None, False, False),
    ],
)
def test_a_case_is_right_when_what_is_true_is_found_and_nothing_else(case: Case, right: bool, placed: bool) -> None:
    row = Judged(job_of(), case, (truth_of(**SYNC),))
    assert (row.is_right, row.is_placed) == (right, placed)


def test_figures_are_held_against_the_ledger() -> None:
    fact = "the host waits 492 ns a step"
    row = Judged(job_of(), case_of("sync-bound", fact=fact, value=0.3), (truth_of(**SYNC),))
    assert {each.name: each.is_near for each in row.figures} == {
        "step": True,
        "sync-wait": False,
        "time at a line": False,
    }
    assert {each.name: round(each.true) for each in row.figures if each.name != "sync-wait"} == {
        "step": 910,
        "time at a line": 460,
    }
    assert row.case is not None
    twice = Case(findings=row.case.findings * 2, measurements=row.case.measurements)
    assert Judged(row.job, twice, row.truths).figures == row.figures
    assert Figure("x", 104, 100).is_near
    assert not Figure("x", 106, 100).is_near


def test_a_job_that_other_costs_limit_otherwise_has_to_be_called_so() -> None:
    job = job_of(checks=("limit:sync",))
    assert measured(job, [truth_of(**SYNC)]) is job
    other = measured(job, [truth_of(kernel=20, copy=300)])
    assert other.expected == {"transfer-bound", "pin-memory-blocking"}
    assert other.lines == (1,)
    assert backed([truth_of(kernel=100)]) >= {"compute-bound"}


def test_costs_are_drawn_around_the_first_and_the_same_for_a_seed() -> None:
    job = Job("a", SCRIPT, "healthy", {})
    truths = [truth_of(kernel=1000)]
    costs = drawn(job, truths, 1)
    assert costs == drawn(job, truths, 1)
    assert costs != drawn(job, truths, 2)
    assert 1000 * 0.6 < costs["kernels"]["addmm"] < 1000 * 1.7


def test_the_jobs_are_whole() -> None:
    """48 with a fault, 20 healthy; slugs and verdicts are the catalog's, and lines are lines of the script."""
    known, rows = catalog(), held.jobs()
    healthy = [job for job in rows if job.is_healthy]
    assert (len(rows), len(healthy)) == (68, 20)
    assert len({job.id for job in rows}) == len(rows)
    for job in rows:
        compile(job.script, job.id, "exec")
        assert job.slugs | job.also <= known.faults.keys() | known.verdicts.keys(), job.id
        assert job.verdicts <= known.verdicts.keys(), job.id
        assert all(0 < line <= len(job.script.splitlines()) for line in job.lines), job.id
        assert job.page == bool(job.expected) or job.is_healthy, job.id
        assert not any(word in job.script for word in ("simulat", "torchtriage", '"sim"')), job.id
