"""Memory that is used before a copy has ended, as a run tells it: of jobs that race, and of others that wait."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from judged import Judged

from torchtriage.examine.run.job import begin
from torchtriage.examine.run.job.accelerator import accelerator
from torchtriage.examine.run.job.hooks import races, streams
from torchtriage.examine.run.reader.load import read
from torchtriage.simulation import Simulator
from torchtriage.triage import probes

FILE = Path(__file__).parent / "trainings" / "racing.py"
STEPS = 12


def _loaded() -> ModuleType:
    spec = importlib.util.spec_from_file_location("racing", FILE)
    module = importlib.util.module_from_spec(spec)
    sys.modules["racing"] = module
    spec.loader.exec_module(module)
    return module


racing = _loaded()
Run = Callable[..., Judged]


@pytest.fixture
def run(simulator: Simulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    jobs: list[Any] = []

    def watch(loop: racing.Loop) -> Judged:
        parts = racing.Parts.of(simulator, STEPS)
        accelerator.forget()
        jobs.append(begin(str(tmp_path), [str(room) for room in probes()]))
        simulator.reset()
        simulator.costs = racing.COSTS
        loop(parts)
        jobs[-1].leave("exit")
        assert not jobs[-1].lost
        return Judged(read(tmp_path))

    monkeypatch.setattr(accelerator, "clock", lambda: simulator.now)
    methods = wrapped()
    yield watch
    for job in jobs:
        job.leave("test")
        job.tidy()
    assert wrapped() == methods


def wrapped() -> list[Any]:
    """What the watch takes the places of."""
    methods = [vars(torch.Tensor).get(name) for name in (*races.READS, *races.WRITES, "copy_", "numpy", "__setitem__")]
    ordering = [vars(torch.sim.Stream).get(name) for name in streams.ORDERING]
    return [*methods, *ordering, torch.sim.synchronize, torch.stack, torch.cat, torch.save]


def marked(loop: racing.Loop) -> list[int]:
    """The lines of LOOP beside which it says that they race."""
    first, lines = loop.__code__.co_firstlineno, FILE.read_text().splitlines()
    last = max(line for _, _, line in loop.__code__.co_lines() if line)
    return [number for number in range(first, last + 1) if lines[number - 1].endswith("# races here")]


@pytest.mark.parametrize("loop", [*racing.READ_EARLY, *racing.OVERWRITTEN_EARLY], ids=lambda loop: loop.__name__)
def test_memory_that_the_host_uses_too_early_is_found_by_line(run: Run, loop: racing.Loop) -> None:
    watched = run(loop)
    assert watched.faults == {"non-blocking-race"}
    told = watched.evidence("run/non-blocking-race")
    assert [each.place.line for each in told] == marked(loop)
    assert all(each.value >= STEPS - 4 for each in told)  # the first step shows the device, the next ones the copies


@pytest.mark.parametrize("loop", racing.UNORDERED, ids=lambda loop: loop.__name__)
def test_a_copy_of_another_stream_that_is_used_too_early_is_found_by_line(run: Run, loop: racing.Loop) -> None:
    watched = run(loop)
    assert watched.faults == {"stream-not-waited"}
    (told,) = watched.evidence("run/stream-not-waited")
    assert [told.place.line] == marked(loop)


@pytest.mark.parametrize("loop", racing.HEALTHY, ids=lambda loop: loop.__name__)
def test_whoever_waits_is_left_alone(run: Run, loop: racing.Loop) -> None:
    assert run(loop).faults == set()
