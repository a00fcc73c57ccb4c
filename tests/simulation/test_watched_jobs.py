"""A job on the device that is watched: nothing waits for the device, its times are its clock's, its numbers unchanged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import torchtriage
from torchtriage.examine.run.job import Job, begin
from torchtriage.examine.run.job.accelerator import accelerator
from torchtriage.examine.run.measures.figures import measurements
from torchtriage.examine.run.reader.load import read
from torchtriage.simulation import Costs, Simulator
from torchtriage.triage import probes

OURS = str(Path(torchtriage.__file__).parent)
PASSING_ON = "watch/patching.py"
FIRST = 64  # steps, all of which are watched
STEPS = 160
COSTS = Costs.free(launch=4_000, kernel=30_000)

Watch = Callable[..., Job]


@pytest.fixture
def watch(tmp_path: Path) -> Iterator[Watch]:
    jobs: list[Job] = []

    def put(*rooms: Path) -> Job:
        jobs.append(begin(str(tmp_path), [str(room) for room in rooms]))
        return jobs[-1]

    accelerator.forget()
    yield put
    for job in jobs:
        job.leave("test")
        job.tidy()


def train(simulator: Simulator, steps: int = STEPS, *, is_logged: bool = False) -> list[torch.Tensor]:
    """The weights after so many steps; the ledger counts them."""
    torch.manual_seed(0)
    parts = nn.Linear(16, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 4)
    model = nn.Sequential(*parts).to("sim")
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    inputs, targets = torch.randn(8 * steps, 16), torch.randint(4, (8 * steps,))
    for batch, target in torch.utils.data.DataLoader(torch.utils.data.TensorDataset(inputs, targets), batch_size=8):
        loss = nn.functional.cross_entropy(model(batch.to("sim")), target.to("sim"))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if is_logged:
            loss.item()
        simulator.step()
    return [each.detach().cpu() for each in model.parameters()]


def ours(simulator: Simulator, since: int) -> list[tuple[str, int, str]]:
    """Where the watch waited for the device from step SINCE on; what the job asked for, it may have passed on."""
    waits = [each for each in simulator.ledger.synchronisations if each.file.startswith(OURS) and each.step >= since]
    return [(each.file, each.line, each.call) for each in waits if not each.file.endswith(PASSING_ON)]


@pytest.mark.parametrize("is_logged", [False, True])
def test_after_the_first_steps_no_probe_waits_for_the_device(
    simulator: Simulator, watch: Watch, is_logged: bool
) -> None:
    simulator.costs = COSTS
    watch(*probes())
    train(simulator, is_logged=is_logged)
    assert not ours(simulator, since=2)


def test_a_quiet_step_has_one_kernel_and_two_copies_of_the_watch(simulator: Simulator, watch: Watch) -> None:
    """The sum of a gradient, and with it the loss, for which two probes ask."""

    def launches() -> tuple[int, int]:
        simulator.reset()
        train(simulator, 24)
        ledger = simulator.ledger
        to_host = [each for each in ledger.copies if each.kind == "device-to-host"]
        return sum(each.step == 22 for each in ledger.kernels), sum(each.step == 22 for each in to_host)

    kernels, copies = launches()
    watch(*probes())
    assert launches() == (kernels + 1, copies + 2)


def adversaries(simulator: Simulator, steps: int) -> None:
    """Two optimizers, whose gradients are filled by each other's backward passes."""
    make, judge = nn.Linear(8, 4).to("sim"), nn.Linear(4, 1).to("sim")
    first, second = (torch.optim.Adam(each.parameters(), 1e-3) for each in (make, judge))
    for _ in range(steps):
        made = make(torch.randn(8, 8).to("sim"))
        second.zero_grad()
        (judge(made.detach()).mean() - judge(torch.randn(8, 4).to("sim")).mean()).backward()
        second.step()
        first.zero_grad()
        (-judge(made).mean()).backward()
        first.step()
        simulator.step()


def accumulated(simulator: Simulator, steps: int) -> None:
    model = nn.Linear(8, 4).to("sim")
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    for step in range(steps):
        model(torch.randn(8, 8).to("sim")).square().mean().backward()
        if step % 4 == 3:
            optimizer.step()
            optimizer.zero_grad()
        simulator.step()


def standing(simulator: Simulator, steps: int) -> None:
    """Steps that change nothing, with gradients that are never cleared."""
    model = nn.Linear(8, 4).to("sim")
    optimizer = torch.optim.SGD(model.parameters(), 0.0)
    for _ in range(steps):
        model(torch.randn(8, 8).to("sim")).square().mean().backward()
        optimizer.step()
        simulator.step()


def scaled(simulator: Simulator, steps: int) -> None:
    model = nn.Linear(8, 4).to("sim")
    optimizer, scaler = torch.optim.AdamW(model.parameters(), 1e-3), torch.amp.GradScaler("sim")
    for _ in range(steps):
        optimizer.zero_grad()
        with torch.autocast("sim", torch.float16):
            loss = model(torch.randn(8, 8).to("sim")).square().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        simulator.step()


@pytest.mark.parametrize("job", [adversaries, accumulated, standing, scaled], ids=lambda job: job.__name__)
def test_a_watched_job_waits_as_often_as_alone(
    simulator: Simulator, watch: Watch, job: Callable[[Simulator, int], None]
) -> None:
    """Also where a wait of ours would look like one that the watch has passed on."""

    def waits() -> int:
        simulator.reset()
        job(simulator, 40)
        return sum(each.step >= 8 for each in simulator.ledger.synchronisations)  # after the second turn

    simulator.costs = COSTS
    alone = waits()
    watch(*probes())
    assert waits() == alone


def test_a_watched_job_trains_to_the_same_bits(simulator: Simulator, watch: Watch) -> None:
    plain = train(simulator, 96)
    job = watch(*probes())
    watched = train(simulator, 96)
    assert not job.lost
    assert all(torch.equal(one, other) for one, other in zip(plain, watched, strict=True))


def test_steps_are_timed_by_the_clock_of_the_device(simulator: Simulator, watch: Watch, tmp_path: Path) -> None:
    """Of steps whose kernels take longer than the host, each begins when the device is done with the one before."""
    simulator.costs = COSTS
    job = watch()
    train(simulator, FIRST)
    torch.accelerator.synchronize()
    job.leave("exit")
    (rank,) = read(tmp_path).ranks
    ends = [max(each.end for each in simulator.ledger.kernels if each.step == step) for step in range(FIRST)]
    truth = {step: (ends[step] - ends[step - 1]) / 1e9 for step in range(1, FIRST)}
    timed = {event.at: event.seconds for event in rank.on_device}
    assert len(timed) > FIRST // 4  # those in which probes leave the device alone
    assert timed == pytest.approx({step: truth[step] for step in timed}, rel=0.05)


def test_the_memory_of_the_device_is_told(simulator: Simulator, watch: Watch, tmp_path: Path) -> None:
    job = watch()
    train(simulator, 32)
    job.leave("exit")
    told: dict[str, Any] = measurements(read(tmp_path))["memory"]
    assert told["peak"] == torch.accelerator.max_memory_allocated()
    assert told["reserved"]["last"] == torch.accelerator.memory_reserved()


def test_losses_are_read_once_the_device_has_computed_them(simulator: Simulator, watch: Watch, tmp_path: Path) -> None:
    simulator.costs = COSTS
    job = watch()
    train(simulator, 32)
    job.leave("exit")
    (rank,) = read(tmp_path).ranks
    losses = [step.loss for step in rank.every_step if step.loss is not None]
    assert len(losses) > 16
    assert losses[0] == pytest.approx(1.386, abs=0.4)  # ln(4)
