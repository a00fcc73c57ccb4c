"""Calls that wait for a device, told of tensors of the host that stand for those of a device: `meta` is no host here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from torchtriage.examine.run.job import Job
from torchtriage.examine.run.job.accelerator import accelerator
from torchtriage.examine.run.job.events import HostWaits
from torchtriage.examine.run.job.hooks import waits
from torchtriage.examine.run.job.hooks.waits import DEPENDING, Waits

MS = 1_000_000
PATCHED = ("item", "tolist", "nonzero", "to", "cpu", "copy_", "__bool__", "__float__", "__int__", "__index__")


class Session:
    """What is asked of a job, with what it was told."""

    def __init__(self) -> None:
        self.placing, self.lost, self.withdrawn = "machinery/device", dict[str, str](), list[str]()
        self.governor = SimpleNamespace(booked=0)
        self.fetching = 0
        self.phases = SimpleNamespace(spent=lambda _phase: self.fetching)
        self.events: list[HostWaits] = []

    def place(self, probe: str, put: Any) -> None:
        self.placing = probe

    def withdraw(self, probe: str) -> None:
        self.withdrawn.append(probe)

    def record(self, event: HostWaits) -> None:
        self.events.append(event)

    @property
    def rows(self) -> list[Any]:
        return [row[2:] for row in self.events[-1].waits]


class Device:
    """A device whose clock and allocator a test moves; 8 ms go by in each call of its own."""

    def __init__(self) -> None:
        self.now, self.allocated, self.can_count = 0, 0, True
        self.busy_until = 0
        self.Event: Any = None

    def memory_stats(self) -> dict[str, int]:
        return {"allocation.all.allocated": self.allocated} if self.can_count else {}

    def call(self, *args: Any, **_kwargs: Any) -> Any:
        self.now += 8 * MS
        return args[0]


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    made = Device()
    monkeypatch.setattr(accelerator, "_kind", "meta")
    monkeypatch.setattr(accelerator, "_module", made)
    monkeypatch.setattr(accelerator, "_read", None)
    monkeypatch.setattr(accelerator, "clock", lambda: made.now)
    monkeypatch.setattr(accelerator, "has", lambda tensor: tensor.device.type == "meta")
    return made


@pytest.fixture
def watched(device: Device) -> tuple[Waits, Session]:
    session = Session()
    made = Waits(session)  # type: ignore[arg-type]
    made.end_step(0)
    return made, session


ON_DEVICE = torch.ones(2, device="meta")


def test_the_device_is_idle_until_a_boundary_as_long_as_nothing_is_allocated(
    device: Device, watched: tuple[Waits, Session]
) -> None:
    made, session = watched
    made.wrap_method("item", device.call)(ON_DEVICE)
    device.now += 5 * MS
    made.pass_boundary("backward")
    device.now += 1 * MS
    device.allocated += 1
    made.pass_boundary("backwarded")
    device.now += 9 * MS
    made.pass_boundary("stepping")
    made.end_step(1)
    assert session.rows == [("item", 1, 0.008, 0.005, 0.005, 0.0, 0.0)]


def test_no_more_is_lost_than_the_host_has_waited(device: Device, watched: tuple[Waits, Session]) -> None:
    made, session = watched
    made.wrap_method("tolist", device.call)(ON_DEVICE)
    device.now += 30 * MS
    made.pass_boundary("batch")
    made.end_step(1)
    assert session.rows == [("tolist", 1, 0.008, 0.03, 0.008, 0.0, 0.0)]


@dataclass
class Mark:
    """An event of DEVICE, which reaches it when it has done what was queued."""

    device: Device
    enable_timing: bool
    at: int = 0

    def record(self) -> None:
        self.at = max(self.device.now, self.device.busy_until)

    def query(self) -> bool:
        return self.device.now >= self.at

    def elapsed_time(self, other: Mark) -> float:
        return (other.at - self.at) / MS


@pytest.mark.parametrize(
    ("works", "row"),
    [
        pytest.param(8 * MS, ("item", 1, 0.008, 0.005, 0.005, 0.0, 0.008), id="it works all through"),
        pytest.param(5 * MS, ("item", 1, 0.008, 0.008, 0.008, 0.0, 0.005), id="it has done all before"),
        pytest.param(2 * MS, ("item", 1, 0.008, 0.011, 0.008, 0.0, 0.002), id="it works for less than it then idles"),
        pytest.param(0, ("item", 1, 0.008, 0.013, 0.008, 0.0, 0.0), id="it had done all when the wait began"),
    ],
)
def test_a_wait_for_which_the_device_does_nothing_is_lost_whole(
    device: Device, watched: tuple[Waits, Session], works: int, row: tuple[Any, ...]
) -> None:
    """And of the rest what the device then idles, for 5 ms here."""
    made, session = watched
    device.Event = partial(Mark, device)
    device.busy_until = works
    made.wrap_method("item", device.call)(ON_DEVICE)
    device.now += 5 * MS
    made.pass_boundary("batch")
    made.end_step(1)
    assert session.rows == [row]


def test_waiting_for_a_batch_and_what_probes_take_is_no_idleness(
    device: Device, watched: tuple[Waits, Session]
) -> None:
    made, session = watched
    made.wrap_method("item", device.call)(ON_DEVICE)
    device.now += 7 * MS
    session.fetching, session.governor.booked = 4 * MS, 2 * MS
    made.pass_boundary("batch")
    made.end_step(1)
    assert session.rows == [("item", 1, 0.008, 0.001, 0.001, 0.0, 0.0)]


def test_idleness_over_the_end_of_a_step_belongs_to_the_next_one(
    device: Device, watched: tuple[Waits, Session]
) -> None:
    made, session = watched
    made.wrap_method("item", device.call)(ON_DEVICE)
    made.end_step(1)
    device.now += 3 * MS
    made.pass_boundary("batch")
    made.end_step(2)
    assert session.rows == [("item", 0, 0.0, 0.003, 0.003, 0.0, 0.0)]


def test_an_event_or_stream_that_is_waited_for_leaves_the_device_at_work(
    device: Device, watched: tuple[Waits, Session]
) -> None:
    made, session = watched
    made.wrap_synchronize(device.call)(SimpleNamespace(query=bool))
    device.now += 3 * MS
    made.pass_boundary("batch")
    made.end_step(1)
    assert session.rows == [("synchronize", 1, 0.008, 0.0, 0.0, 0.0, 0.0)]


@pytest.mark.parametrize(
    ("name", "args", "kwargs"),
    [
        pytest.param("item", (torch.ones(1),), {}, id="a number of the host"),
        pytest.param("to", (torch.ones(1), torch.float64), {}, id="a conversion on the host"),
        pytest.param("to", (ON_DEVICE, torch.float64), {}, id="a conversion on the device"),
        pytest.param("copy_", (ON_DEVICE, 1.0), {}, id="a number"),
        pytest.param("copy_", (ON_DEVICE, ON_DEVICE), {}, id="a copy within the device"),
        pytest.param("copy_", (torch.ones(1), ON_DEVICE, True), {}, id="a copy to the host that does not block"),
    ],
)
def test_what_does_not_wait_is_not_counted(
    device: Device, watched: tuple[Waits, Session], name: str, args: Any, kwargs: Any
) -> None:
    made, session = watched
    made.wrap_method(name, device.call)(*args, **kwargs)
    made.end_step(1)
    assert session.rows == []


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "call"),
    [
        pytest.param("copy_", (torch.ones(1), ON_DEVICE), {}, "copy_", id="to the host"),
        pytest.param("copy_", (ON_DEVICE, torch.ones(1)), {}, "copy_ from pageable memory", id="to the device"),
        pytest.param("copy_", (ON_DEVICE,), {"src": torch.ones(1)}, "copy_ from pageable memory", id="by name"),
        pytest.param(
            "copy_", (ON_DEVICE, torch.ones(1), True), {}, "copy_ from pageable memory", id="asked not to wait, in vain"
        ),
        pytest.param(
            "copy_", (ON_DEVICE, torch.ones(2).to_sparse()), {}, "copy_ from pageable memory", id="of another layout"
        ),
    ],
)
def test_copies_between_host_and_device_wait(
    device: Device, watched: tuple[Waits, Session], name: str, args: Any, kwargs: Any, call: str
) -> None:
    made, session = watched
    made.wrap_method(name, device.call)(*args, **kwargs)
    made.end_step(1)
    assert [row[:3] for row in session.rows] == [(call, 1, 0.008)]


@pytest.mark.parametrize("there", ["meta", "meta:0", 0, torch.device("meta"), ON_DEVICE])
def test_a_device_has_many_names(device: Device, watched: tuple[Waits, Session], there: Any) -> None:
    made, session = watched

    def to(*_: Any) -> torch.Tensor:
        device.now += 8 * MS
        return ON_DEVICE

    made.wrap_method("to", to)(torch.ones(1), there)
    made.end_step(1)
    assert [row[:2] for row in session.rows] == [("to from pageable memory", 1)]


def test_a_wait_within_a_wait_is_one(device: Device, watched: tuple[Waits, Session]) -> None:
    made, session = watched
    inner = made.wrap_method("item", device.call)
    made.wrap_method("tolist", inner)(ON_DEVICE)
    made.end_step(1)
    assert [row[:2] for row in session.rows] == [("tolist", 1)]


def test_a_device_that_does_not_count_tensors_is_never_called_idle(
    device: Device, watched: tuple[Waits, Session]
) -> None:
    made, session = watched
    device.can_count = False
    made.wrap_method("item", device.call)(ON_DEVICE)
    device.now += 5 * MS
    made.pass_boundary("backward")
    made.end_step(1)
    assert session.rows == [("item", 1, 0.008, 0.0, 0.0, 0.0, 0.0)]
    assert not session.events[-1].is_counted


def test_lines_of_the_user_are_named_and_libraries_and_evaluations_are_not(
    device: Device, watched: tuple[Waits, Session]
) -> None:
    made, session = watched
    item = made.wrap_method("item", device.call)
    item(ON_DEVICE)
    library: dict[str, Any] = {"item": item, "loss": ON_DEVICE}
    exec(compile("item(loss)", "/usr/lib/python3/site-packages/library.py", "exec"), library)
    made.start_evaluation()
    made.pass_boundary("forwarded")
    item(ON_DEVICE)
    made.pass_boundary("batch")
    item(ON_DEVICE)
    made.end_step(1)
    named = {row[0].rpartition("/")[2]: row[3] for row in session.events[-1].waits if row[0]}
    assert named == {"test_waits.py": 1}
    assert sum(row[3] for row in session.events[-1].waits if not row[0]) == 2


def test_a_step_without_waits_is_written_down_and_one_that_nobody_watched_is_not(
    device: Device, watched: tuple[Waits, Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, session = watched
    made.end_step(1)
    session.lost[made.probe] = "an error"
    made.end_step(2)
    session.lost.clear()
    monkeypatch.setattr(waits, "ENOUGH", 2)
    for step in (3, 4, 5):
        made.end_step(step)
    assert [(event.at, event.waits) for event in session.events] == [(1, []), (3, [])]
    assert session.withdrawn == ["machinery/device of meta"]


def test_a_job_without_a_device_keeps_the_methods_of_torch(watch: Callable[..., Job]) -> None:
    watch()
    layer = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(layer.parameters(), 0.1)
    for _ in range(4):
        layer(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        assert not set(PATCHED) & set(vars(torch.Tensor))


def test_functions_whose_answer_depends_on_values_are_those_that_torch_tags() -> None:
    """But for indexing, which datasets do for each sample, and for functions of other modules of torch."""
    tagged = set()
    for name in torch._C._dispatch_get_all_op_names():
        packet, _, overload = name.removeprefix("aten::").partition(".")
        operator = getattr(getattr(torch.ops.aten, packet, None), overload or "default", None)
        tags = getattr(operator, "tags", ())
        if torch.Tag.data_dependent_output in tags or torch.Tag.dynamic_output_shape in tags:
            tagged.add(packet.removesuffix("_dim").removesuffix("_dim_consecutive"))
    public = {name for name in tagged if not name.startswith("_")}
    composed = {"where"}  # with a condition alone it is a call of nonzero
    aside = {"index", "item", "linalg_lstsq", "one_hot"}
    assert public - aside | composed == {*DEPENDING}
