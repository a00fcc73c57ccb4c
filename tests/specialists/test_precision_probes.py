"""What the probes of mixed precision record, where the job stands by hand."""

from __future__ import annotations

from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from torchtriage.examine.run.job.accelerator import Accelerator
from torchtriage.examine.run.job.events import Event, to_row
from torchtriage.specialists.mixed_precision_and_optimization.probes import losses, paying

PASS = 0.02  # seconds of every forward pass, on the clock that the test sets


class FakeJob:
    """A job whose passes take 20 ms, for which the thread and the others of its process wait for a CPU as they say."""

    placing, step = "paying", 10
    accelerator = Accelerator()

    def __init__(self, waits: dict[str, list[float]]) -> None:
        self.waits = waits
        self.events: list[dict[str, Any]] = []
        self.is_withdrawn = False

    def calls(self) -> Any:
        calls: Any = FakeCalls()
        return calls

    def caller(self) -> tuple[str, int]:
        return "train.py", 1

    def why_not_repeated(self, _call: Any) -> str:
        return ""

    def seconds_of(self, _call: Any, *, autocast: bool) -> float:
        return 1.5 * PASS if autocast else PASS

    def waited(self) -> int:
        return int(self.waits["thread"].pop(0) * 1e9)

    def waited_beside(self) -> int:
        return int(self.waits["others"].pop(0) * 1e9)

    def record(self, event: Event) -> None:
        self.events.append(to_row(event))

    def withdraw(self, _probe: str) -> None:
        self.is_withdrawn = True


class FakeCalls(list[Any]):
    def keep(self, _module: Any, _args: Any, _kwargs: Any) -> None:
        self.append(SimpleNamespace(autocast=True))


def growing(share: float) -> list[float]:
    """Seconds waited, read twice a pass: of the pass between the two, SHARE."""
    return [(place + 1) // 2 * share * PASS for place in range(200)]


@pytest.mark.parametrize(
    ("thread", "others", "why", "pairs"),
    [
        pytest.param(0.0, 0.0, "", 4, id="an idle machine"),
        pytest.param(0.0, 0.05, "", 4, id="hardly a wait"),
        pytest.param(0.0, 0.9, "other processes had the CPUs meanwhile", 0, id="its threads waited"),
        pytest.param(0.4, 0.0, "other processes had the CPUs meanwhile", 0, id="the thread waited"),
    ],
)
def test_pairs_during_which_others_had_the_cpus_are_left_out(
    monkeypatch: pytest.MonkeyPatch, thread: float, others: float, why: str, pairs: int
) -> None:
    job = FakeJob({"thread": growing(thread), "others": growing(others)})
    clock = count()
    monkeypatch.setattr(paying, "perf_counter", lambda: next(clock) * PASS)
    watch = paying._Paying(job)  # type: ignore[arg-type]
    for _ in range(20):
        if not job.is_withdrawn:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                watch.forward(None, (), {})
                watch.forwarded(None, None)
            watch.backward(None)
    (event,) = job.events
    assert (event["why"], len(event["pairs"])) == (why, pairs)


def test_a_pass_that_is_long_only_because_it_waited_for_a_cpu_is_a_toy(monkeypatch: pytest.MonkeyPatch) -> None:
    job = FakeJob({"thread": growing(0.9), "others": growing(0.0)})
    clock = count()
    monkeypatch.setattr(paying, "perf_counter", lambda: next(clock) * PASS)
    watch = paying._Paying(job)  # type: ignore[arg-type]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        watch.forward(None, (), {})
        watch.forwarded(None, None)
    watch.backward(None)
    assert job.is_withdrawn
    assert job.events == []


def test_a_batch_that_was_given_the_memory_of_what_has_been_freed_is_another_tensor() -> None:
    buffer = bytearray(64)
    output = torch.frombuffer(buffer, dtype=torch.float32)
    place, whole, half = losses.memory(output), losses.memory(output.detach()), losses.memory(output[8:])
    del output
    batch = torch.frombuffer(buffer, dtype=torch.float32)
    assert place == whole
    assert place not in {losses.memory(batch), half, None}
    assert place[1] == batch.data_ptr()  # by address alone they were one


def test_a_tensor_without_memory_lies_nowhere() -> None:
    assert losses.memory(torch.empty(4, device="meta")) is None
    assert losses.memory(torch.eye(2).to_sparse()) is None
