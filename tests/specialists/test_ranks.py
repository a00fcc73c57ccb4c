"""Planted jobs of several ranks and their healthy twins, each run to its end: what is found, on which rank and where."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from jobs import Server
from machine import Machine, skip_where_busy

from torchtriage import triage
from torchtriage.core.case import Case
from torchtriage.core.fault import Severity

CASES = Path(__file__).parent.parent / "cases" / "ranks"
SILENT = CASES.parent / "silent"  # the errors that TrainCheck's authors collected (OSDI 2025), by their names
EXPECT = re.compile(
    r"# expect: (?P<fault>[a-z0-9-]+)(?: step (?P<step>\d+))?(?: rank (?P<rank>\d+))?(?: module (?P<module>\S+))?"
)
HEAD = re.compile(r"^# (ranks|exits|limit|hang): (\d+)$", re.M)


@pytest.fixture(scope="module")
def jobs() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


def expected(script: Path) -> dict[str, tuple[int, dict[str, str]]]:
    """By fault: the marked line, and what the mark says of step, rank and module."""
    marks = ((number, EXPECT.search(text)) for number, text in enumerate(script.read_text().splitlines(), start=1))
    return {
        mark["fault"]: (number, {name: value for name, value in mark.groupdict().items() if value and name != "fault"})
        for number, mark in marks
        if mark
    }


def judged(script: Path, jobs: Server, folder: Path, **options: int) -> Case:
    head = {name: int(value) for name, value in HEAD.findall(script.read_text())}
    head |= {"ranks": head.get("ranks", 0), "limit": head.get("limit", 60), **options}
    code = jobs.run(script, folder, **{name: value for name, value in head.items() if name != "exits"})
    said = "\n".join(each.read_text() for each in sorted(folder.glob("stderr*.txt")))
    assert code == head.get("exits", 0) or ("hang" in head and expected(script)), said
    case = triage.judge(folder)
    assert not [each for each in case.inconclusive if "switched off" in each.why or "detector failed" in each.why]
    return case


@pytest.mark.parametrize("script", sorted([*CASES.glob("*.py"), *SILENT.glob("*.py")]), ids=lambda path: path.stem)
def test_what_is_planted_among_ranks_is_found_where_it_is_and_nothing_else(
    script: Path, jobs: Server, machine: Machine, tmp_path: Path
) -> None:
    marks = expected(script)

    def attempt(name: str) -> Case:
        case = judged(script, jobs, tmp_path / name)
        loud = {each.fault.slug: each for each in case.findings if each.fault.severity is not Severity.INFO}
        assert {slug: each.evidence[0].fact for slug, each in loud.items() if slug not in marks} == {}
        return case

    case = machine.until_told(attempt, marks)
    found = {each.fault.slug: [item.place for item in each.evidence] for each in case.findings}
    skip_where_busy(case, marks)
    assert set(marks) <= set(found)
    for slug, (line, fields) in marks.items():
        places = [place for place in found[slug] if (Path(place.path or "").name, place.line) == (script.name, line)]
        assert places or fields, found[slug]
        assert any({name: str(getattr(place, name)) for name in fields} == fields for place in found[slug])


RESTING = (
    "averaged_by_hand", "clipped_on_all", "diverged_centres", "diverged_clipped_on_one", "diverged_written_on_one",
    "figures_of_each_rank", "hang_order_swapped", "same_shuffled_alike", "sharded_fully", "step_skipped_by_all",
)  # fmt: skip


@pytest.mark.parametrize("name", RESTING)
def test_what_ranks_are_compared_by_is_counted_in_steps_that_rest(
    name: str, jobs: Server, machine: Machine, tmp_path: Path
) -> None:
    script = CASES / f"{name}.py"

    def attempt(folder: str) -> Case:
        return judged(script, jobs, tmp_path / folder, rests_from=4)

    case = machine.until_told(attempt, expected(script))
    assert '"rested":' in "".join(each.read_text() for each in tmp_path.rglob("rank*.jsonl"))
    assert {each.fault.slug for each in case.findings if each.fault.severity is not Severity.INFO} == {
        *expected(script)
    }


TWO_LOOPS = """
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(rank)
model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 64), nn.Linear(64, 64), nn.Linear(64, 1)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def warm_up():
    for _ in range(20):
        loss = model(torch.randn(8, 8)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def train():
    for step in range(20):
        loss = model(torch.randn(8, 8)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == 5 and rank == 0:
            figures = torch.ones(100_000)
            dist.all_reduce(figures)


warm_up()
train()
"""


def test_a_backward_pass_that_rests_is_noted_with_the_loop_that_it_is_in(jobs: Server, tmp_path: Path) -> None:
    script = tmp_path / "loops.py"
    script.write_text(TWO_LOOPS)
    jobs.run(script, tmp_path / "job", ranks=2, rests_from=4)
    found = {each.fault.slug: each.evidence[0].place for each in triage.judge(tmp_path / "job").findings}
    lines = TWO_LOOPS.splitlines()
    assert "uneven-steps" not in found
    assert lines[(found["collective-on-some-ranks"].line or 0) - 1].strip() in {
        "loss.backward()", "dist.all_reduce(figures)",
    }  # fmt: skip
    assert (found["collective-on-some-ranks"].line or 0) > lines.index("def train():")


def test_a_third_of_the_jobs_are_healthy_twins() -> None:
    scripts = list(CASES.glob("*.py"))
    healthy = [script for script in scripts if not expected(script)]
    assert 3 * len(healthy) >= len(scripts) > 0
