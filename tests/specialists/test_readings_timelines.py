"""What is said of traces: of planted jobs, and of summaries made by hand."""

from __future__ import annotations

import json
from dataclasses import replace as planned
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from msgspec.structs import replace
from traced.jobs import MANY, Job, Plan, jobs, made
from traced.simulated import truth

from torchtriage import triage
from torchtriage.catalog.load import catalog
from torchtriage.core.case import Case
from torchtriage.core.evidence import Inconclusive, Outcome
from torchtriage.diagnose import weigh
from torchtriage.examine.artefact import trace
from torchtriage.examine.artefact.trace.clocks import Arrival
from torchtriage.examine.artefact.trace.device import IDLE
from torchtriage.examine.artefact.trace.rank import KernelRow, Met, RankSummary, ShapeRow, StepOf
from torchtriage.examine.detector import perform
from torchtriage.specialists.performance_profiling.readings import rooflines
from torchtriage.triage import detectors

MS = 1_000_000
BY_NAME = {job.name: job for job in jobs() if job.world < MANY}


def said(case: Case) -> tuple[set[str], set[str]]:
    return {finding.fault.slug for finding in case.findings}, {verdict.verdict for verdict in case.verdicts}


@pytest.mark.parametrize("name", sorted(BY_NAME))
def test_a_planted_cause_is_found_and_nothing_else(name: str, tmp_path: Path) -> None:
    job = planned(BY_NAME[name], world=min(BY_NAME[name].world, 4))
    made(job, tmp_path)
    assert said(triage.read([tmp_path])) == (set(job.faults), set(job.verdicts))


def test_every_phase_of_every_step_is_that_of_the_simulation(tmp_path: Path) -> None:
    paths, ranks = made(Job("x", Plan(data=9 * MS, items=3, transfer=3 * MS), 2, 5, frozenset(), frozenset()), tmp_path)
    for path, rank in zip(paths, ranks, strict=True):
        for step, true in zip(trace.summary(str(path)).steps, truth(rank), strict=True):
            spent = {**{phase: step.spent[phase] for phase in true if phase != "idle"}}
            assert {**spent, "idle": sum(step.spent[cause] for cause in IDLE)} == true


@pytest.mark.parametrize(
    ("phase", "words"), [("input", "waiting for its data"), ("host", "code of the host"), ("compute", "computing")]
)
def test_a_straggler_is_named_with_the_phase_that_costs_it_its_time(phase: str, words: str, tmp_path: Path) -> None:
    made(Job("late", Plan(late=2, more=80 * MS, phase=phase), 4, 1, frozenset(), frozenset()), tmp_path)
    (finding,) = [each for each in triage.read([tmp_path]).findings if each.fault.slug == "straggler"]
    (item,) = finding.evidence
    assert item.place.rank == 2
    assert words in item.fact


# Summaries made by hand


def rank(number: int, world: int, late: int = 0, skew: int = 0, **further: Any) -> RankSummary:
    """Eight steps of 100 ms, in each of which one all-reduce of group "0" ends 60 ms after the step's begin."""
    steps, met = [], []
    for step in range(8):
        begin = step * 100 * MS + skew
        met.append(Met("allreduce", "0", step, step, 0, begin + 50 * MS + late, begin + 61 * MS + late, 2**24))
        ahead = {"compute": 40 * MS, "input": late}
        steps.append(StepOf(step, begin, 100 * MS, {"compute": 90 * MS, "communication": 10 * MS}, ahead))
    total = {"compute": 720 * MS, "communication": 80 * MS}
    made_of: dict[str, Any] = {
        "path": f"rank{number}.json", "rank": number, "world": world, "host": f"node{number}", "device": "A100",
        "base": 0, "events": 9, "bytes": 9, "count": 8, "total": total, "length": 800 * MS, "steps": tuple(steps),
        "met": tuple(met), "kernel_count": 8, "kernel_time": 720 * MS,
    }  # fmt: skip
    return RankSummary(**{**made_of, **further})


def outcomes(*ranks: RankSummary) -> tuple[Outcome, ...]:
    noun = trace.together(ranks)
    home = "torchtriage.examine.artefact.trace"
    return (*noun.inconclusive, *perform(tuple(detectors("readings", home)), noun))


def findings(*ranks: RankSummary) -> dict[str, str]:
    return {each.fault.slug: each.evidence[0].fact for each in weigh.findings(outcomes(*ranks), catalog())}


def whys(*ranks: RankSummary) -> str:
    return " ".join(each.why for each in trace.together(ranks).inconclusive)


def waited(told: RankSummary, ends: int) -> RankSummary:
    """TOLD with collectives that end for all when the last has come."""
    return replace(
        told, met=tuple(replace(each, end=each.begin - (each.begin % (100 * MS)) + ends) for each in told.met)
    )


def test_even_ranks_are_no_fault() -> None:
    assert findings(*(rank(number, 4) for number in range(4))) == {}


@pytest.mark.parametrize("skew", [0, 3_000 * MS])
def test_a_late_rank_is_found_whatever_its_clock_says(skew: int) -> None:
    late = rank(2, 4, late=20 * MS)
    late = replace(late, met=tuple(replace(each, end=each.end - 0) for each in late.met))
    others = [
        replace(one, met=tuple(replace(each, end=each.end + 20 * MS) for each in one.met))
        for one in (rank(number, 4) for number in (0, 1, 3))
    ]
    shifted = replace(
        late,
        met=tuple(replace(each, begin=each.begin + skew, end=each.end + skew) for each in late.met),
        steps=tuple(replace(each, begin=each.begin + skew) for each in late.steps),
    )
    fact = findings(shifted, *others)["straggler"]
    assert "rank 2 comes 20.0 ms later" in fact
    assert "100% of that is waiting for its data" in fact
    assert trace.together([shifted, *others]).clocks.residual == 0


def test_lateness_in_the_first_step_alone_is_no_straggler() -> None:
    late = rank(1, 3)
    first = replace(late.met[0], begin=late.met[0].begin + 5 * MS)
    assert findings(rank(0, 3), replace(late, met=(first, *late.met[1:])), rank(2, 3)) == {}


def test_a_slow_link_is_named_by_its_ranks() -> None:
    def linked(number: int, group: str, length: int) -> RankSummary:
        told = rank(number, 4)
        slow = tuple(replace(each, group=group, end=each.begin + length) for each in told.met)
        spent = {"compute": 60 * MS, "communication": 40 * MS}
        steps = tuple(replace(each, spent=spent) for each in told.steps)
        return replace(told, met=slow, steps=steps, total={"compute": 480 * MS, "communication": 320 * MS})

    fact = findings(linked(0, "a", 5 * MS), linked(1, "a", 5 * MS), linked(2, "b", 40 * MS), linked(3, "b", 40 * MS))
    assert "the link among ranks 2, 3 is slow" in fact["communication-bound"]


def test_one_rank_of_many_does_not_tell_the_network_from_a_late_rank() -> None:
    told = rank(0, 8, total={"compute": 300 * MS, "communication": 500 * MS})
    spent = {"compute": 40 * MS, "communication": 60 * MS}
    told = replace(told, steps=tuple(replace(each, spent=spent) for each in told.steps))
    assert findings(told) == {}
    (why,) = [each.why for each in outcomes(told) if getattr(each, "why", "").startswith("collectives take")]
    assert "60% of a step" in why
    assert "traces are missing of 1, 2, 3, 4, 5, 6, 7" in whys(told)


def test_one_rank_that_is_all_there_is_leaves_nothing_to_be_said() -> None:
    assert whys(rank(0, 1)) == ""
    assert "clocks" not in whys(rank(3, 8))


def test_missing_ranks_mixed_steps_and_doubled_ranks_are_told() -> None:
    short = rank(1, 3)
    assert "missing of 2" in whys(rank(0, 3), short)
    assert "7 are in all traces" in whys(rank(0, 2), replace(short, world=2, steps=short.steps[1:]))
    assert "2 traces are of rank 0" in whys(rank(0, 2), rank(0, 2), rank(1, 2))
    assert "do not tell their rank" in whys(rank(0, 2, rank=None), rank(1, 2, rank=None))
    assert "cannot be aligned" in whys(rank(0, 2), rank(1, 2, met=()))


def test_many_small_collectives_are_named_to_those_who_asked_for_more() -> None:
    told = rank(0, 2)
    many = tuple(
        replace(each, nth=nth, sequence=-1, bytes=2**14, begin=each.begin + nth, end=each.begin + nth + 1)
        for each in told.met
        for nth in range(12)
    )
    assert "12 all-reduces in a step" in findings(replace(told, met=many), rank(1, 2))["bucket-size"]


@pytest.mark.parametrize(
    ("name", "slugs"),
    [
        ("ampere_sgemm_128x64_tn", {"tf32-off"}),
        ("cutlass_80_simt_sgemm_128x128_8x4_nt_align1", {"tf32-off"}),
        ("ampere_tf32_s1688gemm_128x128_nn", set()),
        ("volta_sgemm_128x64_tn", set()),
    ],
)
def test_the_names_of_kernels_tell_tf32(name: str, slugs: set[str]) -> None:
    assert set(findings(rank(0, 1, kernels=(KernelRow(name, 8, 400 * MS, 0),)))) == slugs


@pytest.mark.parametrize(
    ("dims", "types", "slugs"),
    [
        ("[[4096,768],[768,50257]]", '["c10::Half","c10::Half"]', {"matmul-misaligned"}),
        ("[[4096,768],[768,50304]]", '["c10::Half","c10::Half"]', set()),
        ("[[4096,768],[768,50257]]", '["float","float"]', set()),
        ('[["x"],{}]', "[1]", set()),
        ("[[4096,768],[768", "", set()),
    ],
)
def test_shapes_of_products_tell_rows_of_odd_length(dims: str, types: str, slugs: set[str]) -> None:
    row = ShapeRow("aten::mm", dims, types, 8, 300 * MS, "gemm")
    assert set(findings(rank(0, 1, shapes=(row,)))) == slugs


def test_a_trace_without_shapes_does_not_tell_what_its_kernels_wait_for() -> None:
    (why,) = [each.why for each in outcomes(rank(0, 1)) if getattr(each, "detector", "") == "trace/memory-share"]
    assert "no shapes" in why


@pytest.mark.parametrize("count", [2, 3, 4, 7, 10])
def test_lateness_is_against_the_median_of_the_others(count: int) -> None:
    begins = {number: (number * 37) % 11 * 10 for number in range(count)}
    arrival = Arrival(0, "", begins)
    for number in begins:
        others = [begin for each, begin in begins.items() if each != number]
        assert arrival.late(number) == begins[number] - int(median(others))


@pytest.mark.parametrize(
    ("name", "share"),
    [
        ("ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn", 1.0),
        ("ampere_fp16_s1688gemm_fp16_128x128_ldg8_f2f_nn", 1.0),
        ("cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x128", 1.0),
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1", 1.0),
        ("void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128>>", 1.0),
        ("ampere_sgemm_128x64_tn", 0.0),
        ("void at::native::vectorized_elementwise_kernel<4, GeluCUDAKernelImpl>", 0.0),
        ("void cub::DeviceRadixSortOnesweepKernel", 0.0),
    ],
)
def test_kernels_say_by_their_names_whether_tensor_cores_compute(name: str, share: float) -> None:
    assert rooflines.on_tensor_cores(rank(0, 1, kernels=(KernelRow(name, 8, 400 * MS, 0),))) == share


def test_how_much_of_the_communication_is_hidden_is_a_figure(tmp_path: Path) -> None:
    paths, _ = made(Job("x", Plan(transfer=3 * MS), 2, 5, frozenset(), frozenset()), tmp_path)
    figures = trace.measurements(trace.read([str(path) for path in paths]))
    assert 0.5 < figures["ranks"][0]["overlap"] < 1.0
    assert sum(figures["shares"].values()) == pytest.approx(1.0)
    assert sum(figures["ranks"][1]["shares"].values()) == pytest.approx(1.0)


def test_names_with_braces_stand_in_a_fact_as_they_are() -> None:
    row = KernelRow("void f<g::{lambda()#1}>", 8, 700 * MS, 0)
    (verdict,) = weigh.verdicts(outcomes(rank(0, 1, kernels=(row,))), catalog())
    assert "{lambda()#1}" in verdict.evidence[0].fact


# Traces that break off, and such of few steps

HIDDEN = ("healthy, data hidden", "healthy, small copies hidden", "launch", "sync", "sync of longer kernels", "input")


def broken(job: Job, folder: Path, kept: float) -> Path:
    (path,), _ = made(planned(job, world=1, plan=planned(job.plan, late=-1)), folder, "kineto")
    path.write_bytes(path.read_bytes()[: int(kept * path.stat().st_size)])
    return path


@pytest.mark.parametrize("kept", [0.05, 0.1, 0.3, 0.55, 0.8, 0.97])
@pytest.mark.parametrize("name", HIDDEN)
def test_a_trace_that_breaks_off_shows_nothing_that_the_whole_does_not(name: str, kept: float, tmp_path: Path) -> None:
    job = BY_NAME[name]
    faults, verdicts = said(triage.read([broken(job, tmp_path, kept)]))
    assert faults <= set(job.faults)
    assert verdicts <= set(job.verdicts)


def test_the_whole_steps_of_a_trace_that_breaks_off_are_judged(tmp_path: Path) -> None:
    case = triage.read([broken(BY_NAME["input"], tmp_path, 0.6)])
    assert said(case) == ({"input-bound"}, {"input-bound"})
    assert any("4 of its steps are known to be whole" in item.why for item in case.inconclusive)
    assert case.measurements["steps"] == 4


def later(path: Path, *categories: str) -> None:
    """The events of CATEGORIES stand behind all others, as the profiler writes those of a device."""
    told = json.loads(path.read_text())
    told["traceEvents"].sort(key=lambda event: event.get("cat") in categories)
    path.write_text(json.dumps(told))


@pytest.mark.parametrize("kept", [0.3, 0.6, 0.75, 0.9])
@pytest.mark.parametrize("name", HIDDEN)
def test_a_device_whose_work_stands_behind_the_break_is_not_taken_for_idle(
    name: str, kept: float, tmp_path: Path
) -> None:
    job = BY_NAME[name]
    (path,), _ = made(planned(job, world=1, plan=planned(job.plan, late=-1)), tmp_path, "kineto")
    later(path, "kernel", "gpu_memcpy", "gpu_memset")
    path.write_bytes(path.read_bytes()[: int(kept * path.stat().st_size)])
    faults, verdicts = said(triage.read([path]))
    assert faults <= set(job.faults)
    assert verdicts <= set(job.verdicts)


def in_steps(*waits: int, whole: int) -> RankSummary:
    """Steps of 100 ms of which so many milliseconds are waits for the next batch."""
    spent = [{"compute": (100 - wait) * MS, "input": wait * MS} for wait in waits]
    steps = tuple(StepOf(at, at * 100 * MS, 100 * MS, each) for at, each in enumerate(spent))
    total = {phase: sum(each[phase] for each in spent) for phase in ("compute", "input")}
    return rank(0, 1, steps=steps, total=total, count=len(waits), length=len(waits) * 100 * MS, met=(), whole=whole)


@pytest.mark.parametrize("waits", [(90,), (90, 90), (90, 0, 0, 0)])
def test_what_the_first_steps_wait_for_is_no_habit(waits: tuple[int, ...]) -> None:
    assert findings(in_steps(*waits, whole=len(waits))) == {}


def test_three_steps_that_wait_are_enough() -> None:
    assert set(findings(in_steps(90, 90, 90, whole=3))) == {"input-bound"}


@pytest.mark.parametrize(
    ("whole", "words"),
    [(0, "no step that is known to be whole"), (1, "1 whole step:"), (2, "2 whole steps:")],
)
def test_too_few_steps_are_said_with_how_to_record_more(whole: int, words: str) -> None:
    (item,) = trace.together([in_steps(90, 90, whole=whole)]).inconclusive
    assert words in item.why
    assert "active=6" in item.unblock


def test_ranks_that_have_two_steps_in_common_are_not_compared() -> None:
    ranks = [
        replace(one, met=tuple(replace(each, end=each.end + 20 * MS) for each in one.met))
        for one in (rank(number, 4, whole=8) for number in (0, 1, 3))
    ]
    ranks.append(rank(2, 4, late=20 * MS, whole=8))
    few = replace(ranks[0], steps=ranks[0].steps[:2], whole=2, count=2)
    whys = {item.why for item in outcomes(few, *ranks[1:]) if isinstance(item, Inconclusive)}
    assert "the traces have 2 whole steps in common: too few to find anything in them" in whys
    assert "straggler" not in findings(few, *ranks[1:])
    assert "straggler" in findings(*ranks)
