"""Memory that is used before a copy has ended, as a run tells it: of jobs that race, and of others that wait."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from judged import Judged
from torch import nn
from trainings import racing

from torchtriage.examine.run.job import begin
from torchtriage.examine.run.job.accelerator import accelerator
from torchtriage.examine.run.job.hooks import races, streams
from torchtriage.examine.run.reader.load import read
from torchtriage.simulation import Simulator
from torchtriage.triage import probes

FILE = Path(__file__).parent / "trainings" / "racing.py"
STEPS = 12


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
    methods = methods_of_torch()
    yield watch
    for job in jobs:
        job.leave("test")
        job.tidy()
    assert methods_of_torch() == methods


def methods_of_torch() -> list[Any]:
    """What the watch takes the places of."""
    names = (*races.READS, *races.CASTS, *races.WRITES, *streams.PREPARING, "copy_", "numpy", "__setitem__")
    methods = [vars(torch.Tensor).get(name) for name in names]
    ordering = [vars(torch.sim.Stream).get(name) for name in streams.ORDERING]
    return [*methods, *ordering, torch.sim.synchronize, torch.save]


def racing_lines(loop: racing.Loop) -> list[int]:
    """The lines of LOOP beside which it says that they race."""
    first, lines = loop.__code__.co_firstlineno, FILE.read_text().splitlines()
    last = max(line for _, _, line in loop.__code__.co_lines() if line)
    return [number for number in range(first, last + 1) if lines[number - 1].endswith("# races here")]


@pytest.mark.parametrize("loop", [*racing.READ_EARLY, *racing.OVERWRITTEN_EARLY], ids=lambda loop: loop.__name__)
def test_memory_that_the_host_uses_too_early_is_found_by_line(run: Run, loop: racing.Loop) -> None:
    watched = run(loop)
    assert watched.faults == {"non-blocking-race"}
    told = watched.evidence("run/non-blocking-race")
    assert [each.place.line for each in told] == racing_lines(loop)
    assert all(each.value >= STEPS - 4 for each in told)  # the first step shows the device, the next ones the copies


@pytest.mark.parametrize("loop", racing.UNORDERED, ids=lambda loop: loop.__name__)
def test_a_copy_of_another_stream_that_is_used_too_early_is_found_by_line(run: Run, loop: racing.Loop) -> None:
    watched = run(loop)
    assert watched.faults == {"stream-not-waited"}
    (told,) = watched.evidence("run/stream-not-waited")
    assert [told.place.line] == racing_lines(loop)


@pytest.mark.parametrize("loop", racing.HEALTHY, ids=lambda loop: loop.__name__)
def test_whoever_waits_is_left_alone(run: Run, loop: racing.Loop) -> None:
    assert run(loop).faults == set()


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
def test_a_compiled_model_has_the_graphs_that_it_has_alone(simulator: Simulator, tmp_path: Path) -> None:
    """Though methods that it calls are replaced, once results of others are copied to the host."""

    class Branches(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(racing.WIDTH, racing.WIDTH)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = (self.layer(x) + 1) * 2
            if y.sum() > 1e9:
                y = y.clone().add_(1)
            return torch.stack([y - y.mean(), y / y.max().float()])

    def graphs(*rooms: Path) -> int:
        torch._dynamo.reset()
        made: list[int] = []

        def compiler(graph: torch.fx.GraphModule, _inputs: list[torch.Tensor]) -> Any:
            made.append(len(graph.graph.nodes))
            return graph.forward

        accelerator.forget()
        parts = racing.Parts.of(simulator, 8)
        parts.model = Branches().to("sim")
        parts.optimizer = torch.optim.SGD(parts.model.parameters(), 0.01)
        job = begin(str(tmp_path), [str(room) for room in rooms]) if rooms else None
        parts.model = torch.compile(parts.model, backend=compiler)
        racing.event_waited_for(parts)
        if job is not None:
            assert "numpy" in vars(torch.Tensor)
            job.leave("exit")
            assert not job.lost
            job.tidy()
        return len(made)

    alone = graphs()
    assert alone
    assert graphs(*probes()) == alone
