"""What limits a step on a device, as a run tells it, held against the ledger of the device.

The watch reads the simulated clock here, through the seam that offers it (`accelerator.clock`), so that times can be
compared to the percent on a machine that does other work. Two jobs run in real time, with the clock of every job.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from judged import Judged
from torch import nn
from trainings import limited

import torchtriage
from torchtriage import simulation
from torchtriage.examine.run.job import begin
from torchtriage.examine.run.job.accelerator import accelerator
from torchtriage.examine.run.job.events import Device, HostWaits
from torchtriage.examine.run.reader.load import read
from torchtriage.examine.run.record import RunRecord
from torchtriage.simulation import Costs, Simulator
from torchtriage.triage import probes

FILE = Path(__file__).parent / "trainings" / "limited.py"
STEPS = 60
CLOSE = 0.05


S = limited.S


class Watched(Judged):
    """A job that has run under all probes: what it wrote, what is made of it, and what the device did."""

    def __init__(self, record: RunRecord, simulator: Simulator, loop: Callable[..., None]) -> None:
        super().__init__(record)
        (self.rank,) = record.ranks
        self.ledger, self.seconds, self.loop = simulator.ledger, simulator.now / 1e9, loop

    @property
    def marked(self) -> list[int]:
        """The lines of the loop beside which it says that they wait."""
        first = self.loop.__code__.co_firstlineno
        last = max(line for _, _, line in self.loop.__code__.co_lines() if line)
        lines = FILE.read_text().splitlines()
        return [number for number in range(first, last + 1) if lines[number - 1].endswith("# waits here")]


Run = Callable[..., Watched]
_known: dict[tuple[Any, ...], Watched | float] = {}  # several tests look at one job


@pytest.fixture
def run(simulator: Simulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    jobs: list[Any] = []

    def put(name: str, *, is_watched: bool = True, steps: int = STEPS, **arguments: Any) -> Watched | float:
        key = (name, is_watched, steps, *sorted(arguments.items()))
        if key not in _known:
            _known[key] = _run(name, is_watched, steps, arguments)
        return _known[key]

    def _run(name: str, is_watched: bool, steps: int, arguments: dict[str, Any]) -> Watched | float:
        job = limited.JOBS[name]
        parts = limited.Parts.of(simulator, steps, width=job.width)
        accelerator.forget()
        if is_watched:
            jobs.append(begin(str(tmp_path), [str(room) for room in probes()]))
        simulator.reset()
        simulator.costs = job.costs
        job.loop(parts, **arguments)
        torch.accelerator.synchronize()
        if not is_watched:
            return simulator.now / 1e9
        jobs[-1].leave("exit")
        assert not jobs[-1].lost
        return Watched(read(tmp_path), simulator, job.loop)

    monkeypatch.setattr(accelerator, "clock", lambda: simulator.now)
    passed_over = [str(Path(each.__file__).parent) for each in (torch, torchtriage)]
    simulator._native.skip_files_under(passed_over)  # a wait's line is the job's, though the watch calls for it
    yield put
    for job in jobs:
        job.leave("test")
        job.tidy()
    assert not {"item", "to", "cpu", "tolist", "copy_", "__bool__"} & set(vars(torch.Tensor))


@pytest.mark.parametrize("name", limited.JOBS)
def test_what_limits_a_step_is_found_and_nothing_else(run: Run, name: str) -> None:
    watched, job = run(name), limited.JOBS[name]
    assert (watched.faults, watched.verdicts) == (set(job.faults), set(job.verdicts))


@pytest.mark.parametrize("answer", limited.ANSWERS)
def test_an_answer_that_depends_on_values_is_waited_for(run: Run, answer: str) -> None:
    watched = run("answers", answer=answer)
    assert watched.faults == {"sync-bound"}
    (wait,) = watched.evidence("run/sync-wait")
    assert wait.place.path is not None
    assert wait.place.path.endswith("limited.py")


@pytest.mark.parametrize("name", ["two items", "metrics", "a branch"])
def test_waits_are_told_by_line_with_the_times_of_the_ledger(run: Run, name: str) -> None:
    watched = run(name)
    told = watched.evidence("run/sync-wait")
    assert sorted(each.place.line for each in told) == watched.marked
    waits = [each for each in watched.ledger.synchronisations if each.step > 3]
    for each in told:
        of_line = [wait.waited / 1e6 for wait in waits if wait.line == each.place.line]
        (milliseconds,) = re.findall(r"times a step, (\S+) ms of", each.fact)
        assert float(milliseconds) == pytest.approx(sum(of_line) / len({wait.step for wait in waits}), rel=CLOSE)
        assert "1.0 times a step" in each.fact
        assert "in 100% of the steps the device has nothing to do in the end" in each.fact


@pytest.mark.parametrize(
    ("name", "close"),
    [
        ("two items", CLOSE),
        ("a figure of each layer", 0.1),  # of a step in which each launch counts, also the few of the watch
        ("metrics", CLOSE),
        ("a branch", CLOSE),
    ],
)
def test_what_is_said_to_be_lost_is_what_the_job_gains_without_its_waits(run: Run, name: str, close: float) -> None:
    (first, *_) = run(name).evidence("run/sync-wait")
    alone, without = run(name, is_watched=False), run(name, is_watched=False, waits=False)
    assert first.value == pytest.approx((alone - without) / alone, rel=close)


def test_idle_time_that_is_told_is_idle_time_of_the_device(run: Run) -> None:
    """After the first wait of each step, and after the second, nothing is launched for two seconds."""
    watched = run("two items")
    told = [sum(row[5] for row in each.waits) for each in watched.rank.all(HostWaits)][3:]
    kernels = sorted((kernel.start, kernel.end, kernel.step) for kernel in watched.ledger.kernels)
    gaps: dict[int, float] = {}
    for (_, end, _), (start, _, step) in pairwise(kernels):
        gaps[step] = gaps.get(step, 0.0) + max(start - end, 0) / 1e9
    truth = [gaps[step] for step in range(4, STEPS - 1)]
    assert sum(told) / len(told) == pytest.approx(sum(truth) / len(truth), rel=CLOSE)
    assert sum(told) / len(told) <= sum(truth) / len(truth)


@pytest.mark.parametrize("name", limited.JOBS)
def test_what_is_called_busy_is_never_more_than_the_device_was(run: Run, name: str) -> None:
    watched = run(name)
    busy = sum(kernel.end - kernel.start for kernel in watched.ledger.kernels) / 1e9
    assert sum(each.busy for each in watched.rank.all(Device)) <= busy


@pytest.mark.parametrize("name", [name for name, job in limited.JOBS.items() if "compute-bound" in job.verdicts])
def test_a_device_that_is_the_limit_is_known_to_be_busy(run: Run, name: str) -> None:
    watched = run(name)
    ((told,), kernels) = watched.evidence("run/compute-share"), watched.ledger.kernels
    whole = max(kernel.end for kernel in kernels) - min(kernel.start for kernel in kernels)
    idle = whole - sum(kernel.end - kernel.start for kernel in kernels)
    assert told.value == pytest.approx(1 - (idle / whole if name != "evaluations" else 0), rel=CLOSE)


@pytest.mark.parametrize(("how", "is_found"), [("never", True), ("item", False), ("synchronize", False)], ids=str)
def test_a_clock_is_held_against_that_of_the_device(run: Run, how: str, is_found: bool) -> None:
    watched = run("a clock around a pass", how=how)
    assert ("timing-without-sync" in watched.faults) is is_found
    if is_found:
        (seen,) = watched.evidence("run/timing-without-sync")
        (line,) = [at for at, text in enumerate(FILE.read_text().splitlines(), 1) if text.endswith("# read here")]
        assert seen.place.line == line
        host, device = map(float, re.findall(r"(\S+) ms", seen.fact))
        kernels = [each for each in watched.ledger.kernels if each.name in {"addmm", "tanh", "mse_loss"}]
        assert device == pytest.approx(sum(each.end - each.start for each in kernels) / STEPS / 1e6, rel=CLOSE)
        assert host == pytest.approx(len(kernels) / STEPS * limited.FAST_HOST.launch / 1e6, rel=CLOSE)


def test_copies_are_told_by_line_with_the_times_of_the_ledger(run: Run) -> None:
    watched = run("pageable copies")
    (copied, *_) = watched.evidence("run/transfer-wait")
    assert [copied.place.line] == watched.marked
    copies = [each for each in watched.ledger.copies if each.line == copied.place.line]
    (milliseconds,) = re.findall(r"times a step, for (\S+) ms of", copied.fact)
    assert float(milliseconds) == pytest.approx(
        sum(each.end - each.start for each in copies) / len(copies) / 1e6, rel=CLOSE
    )


def test_methods_are_those_of_torch_again_once_enough_steps_were_seen(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torchtriage.examine.run.job.hooks import waits

    monkeypatch.setattr(waits, "ENOUGH", 16)
    found: list[bool] = []
    plain = limited.Parts.forward

    def forward(parts: Any, *batch: Any) -> Any:
        found.append("item" in vars(torch.Tensor))
        return plain(parts, *batch)

    monkeypatch.setattr(limited.Parts, "forward", forward)
    watched = run("compute", steps=40)
    assert found == [False, *[True] * 16, *[False] * 23]
    assert len(watched.rank.all(HostWaits)) == 16


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
def test_a_compiled_model_has_the_graphs_that_it_has_alone(simulator: Simulator, tmp_path: Path) -> None:
    def graphs(*rooms: Path) -> int:
        torch._dynamo.reset()
        made: list[int] = []

        def compiler(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Any:
            made.append(len(graph.graph.nodes))
            return graph.forward

        class Branches(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.layer = nn.Linear(8, 8)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                y = self.layer(x)
                if y.sum() > 1e9:
                    y = y * 2
                return y.to(torch.float64).float()

        accelerator.forget()
        model = Branches().to("sim")
        job = begin(str(tmp_path), [str(room) for room in rooms]) if rooms else None
        compiled, optimizer = torch.compile(model, backend=compiler), torch.optim.SGD(model.parameters(), 0.01)
        for _ in range(8):
            optimizer.zero_grad()
            compiled(torch.ones(4, 8).to("sim")).sum().backward()
            optimizer.step()
        if job is not None:
            job.leave("exit")
            assert not job.lost
            job.tidy()
        return len(made)

    alone = graphs()
    assert alone
    assert graphs(*probes()) == alone


# In real time, with the clock of every job


class Slow(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 8 * 40

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        time.sleep(0.004)
        return torch.ones(16), torch.zeros(16)


def in_real_time(loader: Any, folder: Path, step: Callable[[torch.Tensor], None], kernel: int = 500_000) -> Watched:
    simulator = simulation.start(devices=2, costs=Costs.free(kernel=kernel), realtime=True)
    accelerator.forget()
    model = nn.Linear(16, 16).to("sim")
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    job = begin(str(folder), [str(room) for room in probes()])
    for batch, target in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(batch.to("sim")), target.to("sim"))
        loss.backward()
        optimizer.step()
        step(loss)
        simulator.step()
    job.leave("exit")
    assert not job.lost
    job.tidy()
    return Watched(read(folder), simulator, in_real_time)


def test_a_slow_loader_is_found_on_a_device(simulator: Simulator, tmp_path: Path) -> None:
    watched = in_real_time(torch.utils.data.DataLoader(Slow(), batch_size=8), tmp_path, lambda _loss: None)
    assert watched.faults == {"input-bound", "worker-count"}
    assert watched.verdicts == {"input-bound"}


def test_a_wait_is_found_by_the_clock_of_every_job(simulator: Simulator, tmp_path: Path) -> None:
    def logged(loss: torch.Tensor) -> None:
        loss.item()
        time.sleep(0.06)

    batches = [(torch.ones(8, 16), torch.zeros(8, 16))] * 40
    loader = torch.utils.data.DataLoader(batches, batch_size=None)
    watched = in_real_time(loader, tmp_path, logged, kernel=6_000_000)  # a busy machine hid kernels of a third of that
    assert "sync-bound" in watched.faults
    assert {each.place.path for each in watched.evidence("run/sync-wait")} == {"tests/simulation/test_limits.py"}
