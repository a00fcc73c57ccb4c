"""What the probes of memory record, told of events by hand."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from torchtriage.examine.run.job.accelerator import Accelerator
from torchtriage.examine.run.job.code import frames, source
from torchtriage.examine.run.job.events import Event, to_row
from torchtriage.specialists.tensor_operations_and_memory.probes import (
    containers,
    emptied,
    exhaustion,
    graphs,
    holders,
    peaks,
    residents,
)
from torchtriage.specialists.tensor_operations_and_memory.probes.census import Census
from torchtriage.specialists.tensor_operations_and_memory.probes.events import OutOfMemory


class Told:
    """Stands for the job: keeps the kinds of what is recorded, and who listens."""

    def __init__(self) -> None:
        self.listeners: dict[str, Any] = {}
        self.kept: list[tuple[str, dict[str, Any]]] = []
        self.step, self.placing = 0, "probe"
        self.roots: list[torch.nn.Module] = []
        self.built: list[torch.optim.Optimizer] = []
        self.accelerator = Accelerator()
        self.written, self.path_of = source, frames.path_of

    def sampled(self) -> None:
        """Every step is watched."""

    def spaced(self) -> None:
        """Every step is watched."""

    def place(self, _probe: str, put: Any) -> None:
        put(self)

    def on(self, event: str, listener: Any) -> None:
        self.listeners[event] = listener

    def listen(self, *listeners: Any) -> None:
        for listener in listeners:
            self.on(listener.__name__, listener)

    def record(self, event: Event) -> None:
        self.kept.append((event.kind, to_row(event)))

    def caller(self) -> tuple[str, int]:
        return "train.py", 1


def test_the_second_epoch_is_that_of_the_longest_loader() -> None:
    job = Told()
    containers.containers(job)  # type: ignore[arg-type]
    training, validation = range(6), range(2)
    for loader, given in ((training, 0), (validation, 0), (validation, 2), (validation, 4)):
        job.listeners["begun"](loader, given)
    assert job.kept == []
    job.listeners["begun"](training, 6)
    assert [kind for kind, _ in job.kept] == ["second-epoch"]


def test_graphs_are_counted_anew_when_the_steps_are_numbered_anew() -> None:
    job = Told()
    graphs.graphs(job)  # type: ignore[arg-type]
    weight = torch.ones(1, requires_grad=True)
    kept = []
    for step in [*range(25), *range(25)]:
        job.step = step
        if step == 0:
            kept.clear()
        kept.append(weight * 2)
        job.listeners["forwarded"](None, kept[-1])
        job.listeners["iterated"](step)
    first = [(10, 12), (18, 20)]
    renumbered = [(10, 12), (18, 20)]
    assert [(fields["alive"], fields["seen"]) for _, fields in job.kept] == first + renumbered


def test_what_a_graph_keeps_is_counted_without_computing_it_again() -> None:
    calls: list[int] = []

    def layer(x: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        return (x * weight).relu()

    weight = torch.ones(256, requires_grad=True)
    plain = layer(torch.ones(64, 256))
    again = torch.utils.checkpoint.checkpoint(layer, torch.ones(64, 256), use_reentrant=False)
    assert graphs._kept_by(plain)[1] == 2 * 64 * 256 * 4
    assert graphs._kept_by(again)[1] == 64 * 256 * 4
    assert len(calls) == 2


def test_looks_beyond_the_second_wait_for_the_job_and_end_at_ten() -> None:
    looks = holders.Looks()
    for _ in range(2):
        assert looks.due()
        looks.take(lambda: torch.ones(1000, 1000).sum())
    assert not looks.due()
    looks.next = 0.0
    assert looks.due()
    looks.taken = 10
    assert not looks.due()


class Device(Accelerator):
    """One that is in use, or not, and asks its driver three times whenever its cache has been emptied."""

    def __init__(self, used: bool) -> None:
        super().__init__()
        self.used, self.emptied = used, 0

    @property
    def kind(self) -> str:
        return "cuda" if self.used else ""

    def requests(self) -> int:
        return 3 * self.emptied


@pytest.mark.parametrize(("used", "kept"), [(True, [20, 30]), (False, [])])
def test_the_cache_is_counted_by_line_and_step_once_a_device_is_in_use(used: bool, kept: list[int]) -> None:
    job = Told()
    job.accelerator = device = Device(used)
    watch = emptied._Emptied(job)  # type: ignore[arg-type]

    def empty() -> None:
        device.emptied += 1

    call = watch.emptying(empty)
    for job.step in range(30):
        call()
        call()
    watch.ending()
    assert [(kind, fields["steps"]) for kind, fields in job.kept] == [("cache-emptied", steps) for steps in kept]
    assert all(fields["asked"] == 3 * (device.emptied if fields["steps"] == 30 else 38) for _, fields in job.kept)


def test_a_line_that_runs_out_often_is_written_down_ever_more_rarely() -> None:
    job = Told()
    watch = exhaustion.Exhaustion(job, peaks.Peaks(job))  # type: ignore[arg-type]
    for number in range(40):
        watch.count(OutOfMemory(step=number // 2, message="", path="train.py", line=1, phase="forward"))
    watch.ending()
    assert [fields.get("times", 1) for _, fields in job.kept] == [*range(1, 17), 32, 40]
    assert [fields["steps"] for _, fields in job.kept[-2:]] == [16, 20]


def test_views_share_the_memory_that_is_counted() -> None:
    census = Census(Told())  # type: ignore[arg-type]
    whole = torch.zeros(100)
    assert census.count([whole[:10], whole[10:], "no tensor", None]) == 400
    assert census.count([whole]) == 0
    assert census.count([torch.zeros(4, device="meta"), torch.eye(3).to_sparse()]) == 0


def test_states_are_measured_once_after_the_second_step() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.BatchNorm1d(64))
    job = Told()
    job.roots = [model]
    watch = residents._Residents(job)  # type: ignore[arg-type]
    optimizer = torch.optim.AdamW(model[0].parameters())
    job.built = [optimizer]
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.randn(8, 64)).pow(2).mean().backward()
        optimizer.step()
        watch.stepped(optimizer)
    watch.tell()
    ((kind, told),) = job.kept
    weights = 64 * 64 + 64
    assert kind == "residents"
    assert told["parameters"] == 4 * (weights + 128)
    assert told["gradients"] == 4 * weights
    assert told["states"] == 4 * (2 * weights + 2)  # two moments, and the number of steps of each tensor
    assert told["buffers"] == 4 * 128 + 8
