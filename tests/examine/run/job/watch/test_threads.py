"""Steps are those of one thread: the one that learns."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from torchtriage.examine.run.job import Job
from torchtriage.examine.run.reader import load
from torchtriage.triage import probes

Watch = Callable[..., Job]
Events = Callable[..., list[dict[str, Any]]]


def train(steps: int, before: Callable[[], object] = lambda: None, after: Callable[[], object] = lambda: None) -> None:
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    for _ in range(steps):
        before()
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        after()


def in_threads(*works: Callable[[], object]) -> None:
    """Runs each of WORKS in a thread of its own; none ends before all have done theirs."""
    done = threading.Barrier(len(works))
    threads = [threading.Thread(target=lambda work=work: (work(), done.wait())) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_a_job_that_trains_in_a_thread_is_watched_there(watch: Watch, events: Events) -> None:
    job = watch(*probes())
    in_threads(lambda: train(6))
    job.leave("exit")

    assert [row["step"] for row in events("step")] == list(range(6))
    assert all(row["forwards"] == row["backwards"] == 1 for row in events("step"))
    assert not events("probe-off")
    assert not events("thread")


def test_of_two_threads_that_train_in_turns_one_is_watched_and_the_other_is_told(
    watch: Watch, events: Events, tmp_path: Path
) -> None:
    job = watch(*probes())
    mine, other = threading.Semaphore(1), threading.Semaphore(0)
    in_threads(lambda: train(6, mine.acquire, other.release), lambda: train(6, other.acquire, mine.release))
    job.leave("exit")

    assert [row["step"] for row in events("step")] == list(range(6))
    assert all(row["forwards"] == row["backwards"] == 1 for row in events("step"))
    assert len(events("thread")) == 1
    assert "run/threads" in {item.detector for item in load.read(tmp_path).inconclusive}


def test_threads_that_train_at_the_same_moment_keep_the_clock_sane(watch: Watch, events: Events) -> None:
    job = watch(*probes())
    meeting = threading.Barrier(3)
    in_threads(*[lambda: train(20, meeting.wait) for _ in range(3)])
    job.leave("exit")

    assert [row["step"] for row in events("step")] == list(range(20))
    assert all(row["forwards"] <= 1 and row["backwards"] <= 1 for row in events("step")[1:])
    assert not events("probe-off")


def test_threads_that_train_one_after_the_other_are_all_watched(watch: Watch, events: Events) -> None:
    job = watch()
    for _ in range(3):
        in_threads(lambda: train(10))
    job.leave("exit")

    assert len(events("step")) >= 28  # the first step of the next thread shows that the last one has ended
    assert not events("thread")


def test_a_thread_that_fetches_batches_is_not_the_one_that_is_watched(watch: Watch, events: Events) -> None:
    job = watch()
    ready: queue.Queue[torch.Tensor | None] = queue.Queue(2)

    def fetch() -> None:
        for batch in torch.utils.data.DataLoader(torch.ones(48, 2), batch_size=4):
            ready.put(batch)
        ready.put(None)

    thread = threading.Thread(target=fetch)
    thread.start()
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    while (batch := ready.get()) is not None:
        model(batch).sum().backward()
        optimizer.step()
    thread.join()
    job.leave("exit")

    assert [row["step"] for row in events("step")] == list(range(12))
    assert all(row["forwards"] == 1 for row in events("step")[1:])
    assert not any(row["batches"] for row in events("step")[2:])  # one that it had begun to fetch may have counted
    assert not events("thread")


def test_a_wrap_gives_every_thread_what_is_its_own(watch: Watch) -> None:
    owner = SimpleNamespace(double=lambda value: (meeting.wait(), value * 2)[1])
    meeting = threading.Barrier(4)
    job, got = watch(), dict[int, list[int]]()

    def doubled(original: Any) -> Any:
        return lambda value: original(value)  # noqa: PLW0108 - a wrap that adds nothing is still a wrap

    def work(number: int) -> None:
        got[number] = [owner.double(number) for _ in range(50)]

    job.place("room/probe", lambda placed: placed.wrap(owner, "double", doubled))
    in_threads(*[lambda number=number: work(number) for number in range(4)])  # type: ignore[misc]

    assert got == {number: [number * 2] * 50 for number in range(4)}
    assert not job.lost
