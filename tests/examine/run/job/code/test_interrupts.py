"""What others throw into our code goes on to the job; what our code throws does not."""

from __future__ import annotations

import functools
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from torchtriage.examine.run.job import Job
from torchtriage.triage import probes

Watch = Callable[..., Job]
Events = Callable[..., list[dict[str, Any]]]


class Preempted(Exception):
    """Raised by the job's own handler."""


class Handler:
    def __call__(self, *_: Any) -> None:
        raise Preempted

    def method(self, *_: Any) -> None:
        raise Preempted


@pytest.fixture
def signals() -> Iterator[None]:
    before = signal.getsignal(signal.SIGUSR1)
    yield
    signal.signal(signal.SIGUSR1, before)


def function(*_: Any) -> None:
    raise Preempted


@pytest.mark.parametrize(
    "handler",
    [function, Handler().method, Handler(), functools.partial(function)],
    ids=["function", "method", "object", "partial"],
)
@pytest.mark.usefixtures("signals")
def test_what_a_signal_handler_of_the_job_raises_within_a_probe_reaches_the_job(
    handler: Any, watch: Watch, events: Events
) -> None:
    job = watch()
    job.matters()
    signal.signal(signal.SIGUSR1, handler)
    job.place("room/probe", lambda job: job.on("iterated", lambda _step: signal.raise_signal(signal.SIGUSR1)))
    with pytest.raises(Preempted):
        job.fire("iterated", 0)
    assert not events("probe-off")
    assert not job.idle


def test_what_a_probe_raises_by_itself_never_reaches_the_job(watch: Watch, events: Events) -> None:
    def broken(_step: int) -> None:
        raise KeyError("ours")

    job = watch()
    job.matters()
    job.place("room/probe", lambda job: job.on("iterated", broken))
    job.fire("iterated", 0)
    assert [each["probe"] for each in events("probe-off")] == ["room/probe"]


class Counting(TorchDispatchMode):
    calls = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls += 1
        return func(*args, **(kwargs or {}))


def test_under_a_mode_of_the_job_no_probe_computes_and_that_is_told(watch: Watch, events: Events) -> None:
    job = watch()
    job.matters()
    job.place("room/probe", lambda job: job.on("iterated", lambda _step: torch.ones(3).sum()))
    with Counting() as mode:
        job.fire("iterated", 0)
    assert mode.calls == 0
    job.leave("exit")
    assert [(each["events"], each["by"]) for each in events("veiled")] == [(1, "mode")]


def test_while_a_profiler_of_the_job_records_only_probes_that_compute_nothing_are_told(
    watch: Watch, events: Events
) -> None:
    job = watch()
    job.matters()
    seen: list[int] = []

    def discreet(job: Any) -> None:
        job.computes_nothing()
        job.on("iterated", seen.append)

    job.place("room/computing", lambda job: job.on("iterated", lambda _step: torch.ones(3).sum()))
    job.place("room/discreet", discreet)
    with torch.autograd.profiler.profile() as profiler:
        job.fire("iterated", 7)
    assert [each.name for each in profiler.function_events] == []
    assert seen == [7]
    job.leave("exit")
    assert [(each["events"], each["by"]) for each in events("veiled")] == [(1, "profiler")]


def test_time_in_autograd_grad_is_that_of_backward(watch: Watch, events: Events) -> None:
    job = watch()
    job.matters()
    model = torch.nn.Linear(4, 1)
    for _ in range(12):
        loss = model(torch.ones(2, 4)).square().mean()
        for parameter, slope in zip(
            model.parameters(), torch.autograd.grad(loss, list(model.parameters())), strict=True
        ):
            parameter.data -= 0.1 * slope
    job.leave("exit")
    rows = events("step")
    assert rows
    assert all(row["backward"] > 0 for row in rows[1:])


def weights_after_a_compiled_step() -> list[torch.Tensor]:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 1))
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)

    @torch.compile(backend=lambda graph, _inputs: graph.forward)
    def step(batch: torch.Tensor) -> None:
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()

    for _ in range(12):
        step(torch.ones(2, 4))
    torch._dynamo.reset()
    return list(model.parameters())


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own, while it compiles its optimizer
def test_a_step_that_is_compiled_as_a_whole_learns_the_same(watch: Watch, events: Events) -> None:
    plain = weights_after_a_compiled_step()
    job = watch(*probes())
    watched = weights_after_a_compiled_step()
    job.leave("exit")
    assert all(torch.equal(one, other) for one, other in zip(plain, watched, strict=True))
    assert not events("probe-off")


def test_two_threads_that_learn_at_once_are_left_to_themselves(watch: Watch, events: Events) -> None:
    job = watch(*probes())
    job.matters()
    job.watched.learns()
    thread = threading.Thread(target=job.watched.beside)
    thread.start()
    thread.join()
    assert all(probe.startswith("machinery") for probe in job.listeners.probes())
    job.place("room/late", lambda job: job.on("iterated", print))
    assert "room/late" not in job.listeners.probes()
