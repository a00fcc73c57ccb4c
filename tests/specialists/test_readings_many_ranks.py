"""What is said of the traces of many ranks: one thing, of the one that causes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from traced.cluster import Cluster, clusters, made

from torchtriage import triage
from torchtriage.catalog.load import catalog
from torchtriage.core.evidence import Inconclusive, Outcome, Place
from torchtriage.diagnose import weigh
from torchtriage.examine.artefact import trace
from torchtriage.examine.artefact.trace import clocks
from torchtriage.examine.artefact.trace.folded import folded
from torchtriage.examine.artefact.trace.machines import machines
from torchtriage.examine.artefact.trace.rank import KernelRow, Met, RankSummary, StepOf
from torchtriage.examine.artefact.trace.shared import shared
from torchtriage.examine.detector import Sighting, perform
from torchtriage.triage import detectors

WORLD = 64
BY_NAME = {job.name: job for job in clusters(WORLD)}
MS = 1_000_000


@pytest.mark.parametrize("name", sorted(BY_NAME))
def test_a_cause_among_many_ranks_is_one_finding_with_one_row(name: str, tmp_path: Path) -> None:
    job = BY_NAME[name]
    made(job, tmp_path)
    case = triage.read([tmp_path])
    assert {finding.fault.slug for finding in case.findings} == job.faults
    assert {verdict.verdict for verdict in case.verdicts} == job.verdicts
    rows = [item for finding in case.findings for item in finding.evidence]
    assert len(rows) == len(job.faults)
    assert all(words in rows[0].fact for words in job.says)
    assert job.place is None or rows[0].place.rank == job.place
    assert all(item.place.path == f"{tmp_path}/rank{item.place.rank}.json" for item in rows)
    assert all(len(verdict.evidence) == 1 for verdict in case.verdicts)


def test_a_ring_over_all_ranks_does_not_tell_which_of_its_links_is_slow(tmp_path: Path) -> None:
    made(BY_NAME["bad link in one ring of all"], tmp_path)
    (finding,) = triage.read([tmp_path]).findings
    assert "the link" not in finding.evidence[0].fact


def summaries(job: Cluster, folder: Path, **how: Any) -> list[RankSummary]:
    return list(trace.read([str(path) for path in made(job, folder, **how)]).ranks)


def outcomes(ranks: list[RankSummary]) -> tuple[Outcome, ...]:
    noun = trace.together(ranks)
    home = "torchtriage.examine.artefact.trace"
    return (*noun.inconclusive, *perform(tuple(detectors("readings", home)), noun))


def facts(ranks: list[RankSummary]) -> list[str]:
    return [item.fact for each in weigh.findings(outcomes(ranks), catalog()) for item in each.evidence]


def unseen(ranks: list[RankSummary]) -> list[str]:
    return [each.why for each in outcomes(ranks) if isinstance(each, Inconclusive)]


@pytest.mark.parametrize(
    ("folders", "words"),
    [(True, "/node5 come"), (False, "what may be one host (ranks 40 to 47: the traces name none) come")],
)
def test_traces_that_name_no_host_are_laid_together_by_folder_or_by_eights_and_that_is_said(
    folders: bool, words: str, tmp_path: Path
) -> None:
    (fact,) = facts(summaries(BY_NAME["slow host"], tmp_path, hosts=False, folders=folders))
    assert fact.startswith("all 8 ranks of ")
    assert words in fact


def test_some_ranks_of_a_machine_are_told_one_by_one(tmp_path: Path) -> None:
    ranks = frozenset({40, 41, 50})
    told = facts(summaries(Cluster("three", WORLD, late=ranks, phase="host"), tmp_path))
    assert [fact.split(" comes")[0] for fact in told] == ["rank 40", "rank 41", "rank 50"]
    assert "others on host node5 come late, too" in told[0]
    assert "others on host node6 come late because they wait for it" in told[2]


def test_lateness_that_no_rank_has_lost_itself_is_not_laid_at_anyones_door(tmp_path: Path) -> None:
    told = summaries(BY_NAME["slow rank, data"], tmp_path)
    usual = [step.ahead for step in told[0].steps]
    steps = tuple(replace(step, ahead=ahead) for step, ahead in zip(told[45].steps, usual, strict=True))
    told[45] = replace(told[45], steps=steps)
    assert facts(told) == []
    assert any("come late to a collective (" in why and "45" in why for why in unseen(told))


def test_without_collectives_nobody_is_late_and_that_is_said_once(tmp_path: Path) -> None:
    told = [replace(each, met=()) for each in summaries(BY_NAME["slow rank, data"], tmp_path)]
    assert not any("late" in fact for fact in facts(told))
    assert len([why for why in unseen(told) if "their clocks cannot be aligned" in why]) == 1


def test_a_rank_that_is_missing_leaves_lateness_of_the_others(tmp_path: Path) -> None:
    told = summaries(BY_NAME["slow rank, data"], tmp_path)
    (fact,) = facts([*told[:3], *told[4:]])
    assert fact.startswith("rank 45 comes")
    assert any("traces are missing of 3" in why for why in unseen([*told[:3], *told[4:]]))


def test_what_cannot_be_seen_of_many_ranks_alike_is_said_once(tmp_path: Path) -> None:
    told = [replace(each, odd={"events without a length": 3}) for each in summaries(BY_NAME["healthy"], tmp_path)]
    (why,) = [why for why in unseen(told) if "without a length" in why]
    assert why == f"{tmp_path}/rank0.json: 3 events without a length; and 63 more files alike"
    few = [why for why in unseen(told[:7]) if "without a length" in why]
    assert len(few) == 7


# Rows of many ranks


def seen(*values: float | None, unit: str = "of the step") -> list[Sighting]:
    return [
        Sighting(Place(path=f"rank{rank}.json", rank=rank), f"fact {rank}", value, unit)
        for rank, value in enumerate(values)
    ]


def test_the_rows_of_fewer_than_eight_ranks_stay() -> None:
    assert folded(seen(*[0.5] * 7)) == seen(*[0.5] * 7)
    twice = seen(*[0.5] * 8) * 2
    assert folded(twice) == twice


def test_many_rows_become_one_with_the_value_that_an_eighth_reach_at_the_place_of_the_worst() -> None:
    (row,) = folded(seen(*[0.1] * 14, 0.9, 0.3, 0.2, 0.2))
    assert (row.place, row.value) == (Place(path="rank14.json", rank=14), 0.2)
    assert row.fact == (
        "fact 16 on rank 16, and as much or more on an eighth of 18 ranks: 10% to 90%, most on 14 (90%), 15 (30%), 16 (20%)"
    )
    (row,) = folded(seen(*[12.0] * 9, unit="a step"))
    assert "12 to 12" in row.fact


def test_rows_without_a_value_become_one_with_the_ranks() -> None:
    (row,) = folded(seen(*[None] * 9))
    assert row.fact == "fact 0; on 9 ranks, first of them 0, 1, 2"


# Clocks and machines


def rank(number: int, host: str | None, skew: int = 0, path: str = "") -> RankSummary:
    """Ten all-reduces of group "all" and as many of the group of the host."""
    met = []
    for step in range(10):
        end = step * 100 * MS + skew
        met += [
            Met("allreduce", group, step, step, 0, end, end + at * MS, 8) for at, group in ((5, f"{host}"), (9, "all"))
        ]
    return RankSummary(path or f"r{number}.json", number, 4, host, "A100", 0, 1, 1, 10, {}, 1, met=tuple(met))


def test_the_ranks_of_a_host_share_its_clock_however_little_that_differs_from_others() -> None:
    ranks = [(number, rank(number, f"node{number // 2}", skew=3 * MS * (number // 2))) for number in range(4)]
    aligned = clocks.clocks(ranks)
    assert (aligned.offsets, aligned.residual) == ({0: 0, 1: 0, 2: 3 * MS, 3: 3 * MS}, 0)


def test_machines_are_told_by_hosts_then_by_folders_then_by_eights() -> None:
    assert machines([(0, rank(0, "a")), (1, rank(1, None))]) == {0: "host a"}
    by_folder = machines([(each, rank(each, None, path=f"node{each // 2}/r{each}.json")) for each in range(4)])
    assert by_folder == {0: "folder node0", 1: "folder node0", 2: "folder node1", 3: "folder node1"}
    assert machines([(each, rank(each, None, path=f"{each}/trace.json")) for each in range(4)]) == {}
    assert len(set(machines([(each, rank(each, None)) for each in range(16)]).values())) == 2
    assert machines([(each, rank(each, None)) for each in range(12)]) == {}


# What thousands of summaries cost


def large(number: int = 0) -> RankSummary:
    """As many steps and collectives as a summary keeps."""
    met = tuple(Met("allreduce", "all", at, at // 4, at % 4, at * MS, at * MS + 5, 8) for at in range(512))
    steps = tuple(StepOf(step, step * 4 * MS, 4 * MS, {"compute": 4 * MS}) for step in range(128))
    return replace(rank(number, "a"), met=met, steps=steps, count=128, length=512 * MS, total={"compute": 512 * MS})


def test_up_to_two_thousand_ranks_keep_their_summaries_and_more_share_alike() -> None:
    assert shared(large(), 2048) == large()
    few = shared(large(), 10_000)
    assert (len(few.steps), len(few.met)) == (16, 64)
    assert few == replace(shared(large(1), 10_000), rank=0, path="r0.json")
    assert (few.count, few.length, few.total) == (128, 512 * MS, {"compute": 512 * MS})
    assert {step.number for step in few.steps} <= {each.step for each in few.met}


def test_figures_of_very_many_ranks_have_fewer_rows_each() -> None:
    rows = tuple(KernelRow(f"kernel {number}", 1, 1, 0) for number in range(10))
    noun = trace.together([replace(large(), rank=number, kernels=rows) for number in range(2)])
    told = trace.measurements(noun)
    assert [len(told["ranks"][0][part]) for part in ("kernels", "timeline")] == [10, 100]
    assert len(told["late"]["1"]) == 100
    noun = trace.together([replace(large(), rank=number, kernels=rows, met=()) for number in range(2000)])
    told = trace.measurements(noun)
    assert [len(told["ranks"][0][part]) for part in ("kernels", "timeline")] == [3, 32]
