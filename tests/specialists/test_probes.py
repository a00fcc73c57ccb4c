"""Planted jobs and their healthy twins, each run to its end as a process of its own: what is found, and where."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from jobs import Server
from machine import Machine, skip_where_busy

from torchtriage import triage
from torchtriage.core.case import Case
from torchtriage.examine.run.launcher.launch import Launch

CASES = Path(__file__).parent.parent / "cases" / "run"
EXPECT = re.compile(r"# expect: (?P<fault>[a-z0-9-]+)(?: step (?P<step>\d+))?(?: module (?P<module>\S+))?")


@pytest.fixture(scope="module")
def jobs() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


def judged(script: Path, folder: Path) -> Case:
    case, ended = triage.run(Launch((sys.executable, str(script)), folder))
    assert ended.code == 0
    return sound(case)


def sound(case: Case) -> Case:
    """CASE, in which no probe and no detector has failed."""
    assert not [each for each in case.inconclusive if "switched off" in each.why or "detector failed" in each.why]
    return case


def expected(script: Path) -> dict[str, tuple[int, dict[str, str]]]:
    """By fault: the marked line, and what the mark says of step and module."""
    marks = ((number, EXPECT.search(text)) for number, text in enumerate(script.read_text().splitlines(), start=1))
    return {
        mark["fault"]: (number, {name: value for name, value in mark.groupdict().items() if value and name != "fault"})
        for number, mark in marks
        if mark
    }


@pytest.mark.parametrize("script", sorted(CASES.glob("*.py")), ids=lambda path: path.stem)
def test_a_planted_fault_is_found_where_it_is_and_nothing_else(
    script: Path, jobs: Server, machine: Machine, tmp_path: Path
) -> None:
    def attempt(name: str) -> Case:
        code = jobs.run(script, tmp_path / name)
        assert code == int("# exits: 1" in script.read_text()), (tmp_path / name / "stderr.txt").read_text()
        case = sound(triage.judge(tmp_path / name))
        said = {finding.fault.slug: finding.evidence[0].fact for finding in case.findings}
        assert {slug: fact for slug, fact in said.items() if slug not in marks} == {}
        return case

    marks = expected(script)
    case = machine.until_told(attempt, marks)
    findings = {finding.fault.slug: finding.evidence[0] for finding in case.findings}
    skip_where_busy(case, marks)
    assert set(findings) == set(marks), [(each.detector, each.why) for each in case.inconclusive]
    for slug, (line, fields) in marks.items():
        place = findings[slug].place
        assert (Path(place.path or "").name, place.line) == (script.name, line) or (place.path is None and fields)
        assert {name: str(getattr(place, name)) for name in fields} == fields


def test_the_end_of_a_job_decides_which_of_a_schedule_and_its_optimizer_led_though_steps_rest(
    jobs: Server, tmp_path: Path
) -> None:
    for name, slugs in (("schedules_in_order", set()), ("scheduler_first", {"scheduler-before-optimizer"})):
        assert jobs.run(CASES / f"{name}.py", tmp_path / name, rests_from=6) == 0
        assert '"rested":' in (tmp_path / name / "rank0.jsonl").read_text()
        assert {each.fault.slug for each in sound(triage.judge(tmp_path / name)).findings} == slugs


def test_a_third_of_the_cases_are_healthy_twins() -> None:
    scripts = list(CASES.glob("*.py"))
    healthy = [script for script in scripts if not expected(script)]
    assert 3 * len(healthy) >= len(scripts) > 0


TURNS_NAN = """
import random
import torch
from torch import nn

class Noisy(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Dropout(0.3))
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        x = self.inner(x) + random.random()
        return torch.log(x) if self.calls > 5 else x

torch.manual_seed(0)
random.seed(0)
noisy, other = Noisy(), nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.Linear(8, 1))
optimizers = [torch.optim.AdamW(model.parameters(), 1e-2) for model in (noisy, other)]
for _ in range(12):
    for model, optimizer in zip((noisy, other), optimizers):
        optimizer.zero_grad()
        model(torch.randn(16, 8)).mean().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
print([parameter.double().sum().item().hex() for parameter in other.parameters()])
print(torch.rand(1).item().hex(), random.random().hex(), noisy.calls)
print([(name, buffer._version, buffer.double().sum().item()) for name, buffer in noisy.named_buffers()])
"""


def test_tracing_a_nan_leaves_weights_buffers_counters_and_random_numbers_as_they_were(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "job.py"
    script.write_text(TURNS_NAN)
    alone = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True).stdout
    case = judged(script, tmp_path / "run")
    assert capfd.readouterr().out == alone
    assert {finding.fault.slug for finding in case.findings} == {"non-finite-origin"}


CALLED_ONCE = """
import torch
from torch import nn

divisors = iter([1.0] * 11 + [0.0])

class Once(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 1)

    def forward(self, x):
        return self.inner(x) / next(divisors)

model = Once()
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
for _ in range(12):
    optimizer.zero_grad()
    model(torch.randn(4, 4)).pow(2).mean().backward()
    optimizer.step()
"""


def test_a_forward_that_cannot_be_repeated_still_has_its_step_named(tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text(CALLED_ONCE)
    (finding,) = judged(script, tmp_path / "run").findings
    assert finding.fault.slug == "non-finite-origin"
    assert finding.evidence[0].place.step == 11
    assert "StopIteration" in finding.evidence[0].fact
