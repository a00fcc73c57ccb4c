"""What is asked of the device beside the host, and what a device is not asked for that does not have it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from torchtriage.examine.run.job.accelerator import Accelerator


class Event:
    """One of a device that has events, with what was asked of it."""

    def __init__(self, enable_timing: bool = False) -> None:
        self.enable_timing, self.is_recorded = enable_timing, False

    def record(self) -> None:
        self.is_recorded = True


FLAT = {"allocated_bytes.all.current": 7, "allocated_bytes.all.peak": 9, "reserved_bytes.all.current": 20}
NESTED = {"allocated_bytes": {"all": {"current": 7, "peak": 9}}, "reserved_bytes": {"all": {"current": 20, "peak": 30}}}
PROPERTIES = SimpleNamespace(name="card", total_memory=64, major=8, minor=6)


def used(monkeypatch: pytest.MonkeyPatch, **names: Any) -> Accelerator:
    """An accelerator "xpu" that is in use, whose module has NAMES."""
    module = SimpleNamespace(**({"is_initialized": lambda: True} | names))
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: torch.device("xpu"))
    monkeypatch.setattr(torch, "get_device_module", lambda _kind: module)
    return Accelerator()


def test_on_the_host_nothing_is_there() -> None:
    host = Accelerator()
    assert (host.kind, host.module, host.memory(), host.devices(), host.requests()) == ("", None, {}, [], 0)
    assert (host.mark(), host.random_state(), host.is_capturing()) == (None, None, False)
    assert not host.has(torch.ones(1))


def test_a_device_that_the_job_has_not_begun_to_use_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[bool] = []
    accelerator = used(monkeypatch, is_initialized=lambda: bool(begun))
    assert accelerator.kind == ""
    begun.append(True)
    assert accelerator.kind == "xpu"


@pytest.mark.parametrize(
    ("names", "told"),
    [
        pytest.param({"memory_stats": lambda: FLAT}, {"allocated": 7, "peak": 9, "reserved": 20}, id="flat statistics"),
        pytest.param(
            {"memory_stats_as_nested_dict": lambda: NESTED, "memory_stats": lambda: 1 / 0},
            {"allocated": 7, "peak": 9, "reserved": 20},
            id="nested ones, as of CUDA",
        ),
        pytest.param({"memory_stats": dict}, {}, id="statistics that are empty as yet"),
        pytest.param({"current_allocated_memory": lambda: 5}, {"allocated": 5}, id="one number, as of MPS"),
        pytest.param({}, {}, id="a device that tells nothing"),
    ],
)
def test_memory_is_what_the_device_tells(
    monkeypatch: pytest.MonkeyPatch, names: dict[str, Any], told: dict[str, int]
) -> None:
    assert used(monkeypatch, **names).memory() == told


def stats_of(*allocated: int) -> Any:
    """What tells the statistics of several devices, by their index, the first of which is the current one."""
    return lambda index=0: {"allocated_bytes": {"all": {"current": allocated[index], "peak": 2 * allocated[index]}}}


@pytest.mark.parametrize(
    ("allocated", "told"),
    [
        pytest.param((2 << 20, 3 << 20), 2 << 20, id="the current one"),
        pytest.param((5, 0, 7), 7, id="another, where the current one holds next to nothing"),
        pytest.param((0, 0), 0, id="none as yet"),
    ],
)
def test_the_device_that_holds_tensors_is_the_one_that_tells(
    monkeypatch: pytest.MonkeyPatch, allocated: tuple[int, ...], told: int
) -> None:
    names = {"memory_stats_as_nested_dict": stats_of(*allocated), "device_count": lambda: len(allocated)}
    names["mem_get_info"] = lambda index=0: (index, 64)
    accelerator = used(monkeypatch, **names)
    assert accelerator.memory() == {"allocated": told, "peak": 2 * told}
    assert accelerator.space() == {"capacity": 64, "free": allocated.index(told)}


@pytest.mark.parametrize(
    ("names", "told"),
    [
        pytest.param({"recommended_max_memory": lambda: 9}, {"capacity": 9}, id="as of MPS"),
        pytest.param({}, {}, id="a device that does not tell"),
    ],
)
def test_space_is_what_the_device_tells(
    monkeypatch: pytest.MonkeyPatch, names: dict[str, Any], told: dict[str, int]
) -> None:
    assert used(monkeypatch, **names).space() == told


@pytest.mark.parametrize(("names", "is_simulated"), [({"is_simulated": True}, True), ({}, False)])
def test_a_device_says_whether_it_is_simulated(
    monkeypatch: pytest.MonkeyPatch, names: dict[str, Any], is_simulated: bool
) -> None:
    assert used(monkeypatch, **names).is_simulated is is_simulated


def test_nested_statistics_of_torch_are_asked_before_flat_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch._C, "_accelerator_getDeviceIndex", lambda: 3)
    monkeypatch.setattr(torch._C, "_accelerator_getDeviceStats", lambda index: {**NESTED, "num_device_alloc": index})
    accelerator = used(monkeypatch, memory_stats=lambda: 1 / 0)
    assert accelerator.memory() == {"allocated": 7, "peak": 9, "reserved": 20}
    assert accelerator.requests() == 3


@pytest.mark.parametrize(
    ("names", "count"),
    [
        pytest.param({"memory_stats": lambda: {"allocation.all.allocated": 7}}, 7, id="flat statistics"),
        pytest.param(
            {"memory_stats_as_nested_dict": lambda: {"allocation": {"all": {"allocated": 7}}}}, 7, id="as of CUDA"
        ),
        pytest.param({"memory_stats_as_nested_dict": dict}, None, id="statistics that are empty as yet"),
        pytest.param({"memory_stats": dict}, None, id="without the figure"),
        pytest.param({}, None, id="a device that tells nothing"),
    ],
)
def test_tensors_are_counted_where_the_device_does(
    monkeypatch: pytest.MonkeyPatch, names: dict[str, Any], count: int | None
) -> None:
    assert used(monkeypatch, **names).allocations() == count


@pytest.mark.parametrize(
    ("count", "device", "told"),
    [
        pytest.param(2, "xpu:1", [(1,), (1,), (1,)], id="the second of two"),
        pytest.param(1, "xpu:0", [(), (), ()], id="the only one"),
        pytest.param(2, "cpu", [(), (0,), (1,), (), (), ()], id="a model on the host"),
    ],
)
def test_of_several_devices_that_of_the_model_is_asked(
    monkeypatch: pytest.MonkeyPatch, count: int, device: str, told: list[tuple[int, ...]]
) -> None:
    asked: list[tuple[int, ...]] = []

    def ask(*of: int) -> dict[str, int]:
        asked.append(of)
        return FLAT

    accelerator = used(monkeypatch, device_count=lambda: count, memory_stats=ask, current_stream=ask, get_rng_state=ask)
    accelerator.follow(torch.device(device))
    assert accelerator.memory()["peak"] == 9
    accelerator.stream()
    accelerator.random_state()
    assert asked == told
    assert accelerator.is_followed == (device != "cpu")


def test_the_mark_of_a_copy_is_in_the_stream_of_its_device(monkeypatch: pytest.MonkeyPatch) -> None:
    streams: list[Any] = []
    event = SimpleNamespace(record=lambda *stream: streams.append(stream))
    accelerator = used(
        monkeypatch, device_count=lambda: 2, Event=lambda enable_timing: event, current_stream=lambda index: index
    )
    accelerator.mark(device=torch.device("xpu:1"))
    accelerator.follow(torch.device("xpu:0"))
    accelerator.mark()
    accelerator.mark(device=torch.device("xpu:1"))
    assert streams == [(1,), (0,), (1,)]


@pytest.mark.parametrize("timed", [False, True])
def test_a_mark_is_an_event_that_has_been_recorded(monkeypatch: pytest.MonkeyPatch, timed: bool) -> None:
    mark = used(monkeypatch, Event=Event).mark(timed=timed)
    assert (mark.is_recorded, mark.enable_timing) == (True, timed)


def test_nothing_is_launched_into_a_graph_that_is_being_captured(monkeypatch: pytest.MonkeyPatch) -> None:
    accelerator = used(monkeypatch, Event=Event, is_current_stream_capturing=lambda: True)
    assert accelerator.is_capturing()
    assert accelerator.mark() is None


@pytest.mark.parametrize(
    ("properties", "told"),
    [
        pytest.param(PROPERTIES, [{"name": "card", "memory": 64, "capability": [8, 6]}], id="CUDA"),
        pytest.param(
            SimpleNamespace(name="card", total_memory=64),
            [{"name": "card", "memory": 64, "capability": []}],
            id="one without a compute capability",
        ),
        pytest.param(SimpleNamespace(name="card"), [], id="one that does not tell its memory"),
    ],
)
def test_devices_are_described_as_far_as_they_tell(
    monkeypatch: pytest.MonkeyPatch, properties: Any, told: list[dict[str, Any]]
) -> None:
    accelerator = used(monkeypatch, device_count=lambda: 1, get_device_properties=lambda _index: properties)
    assert accelerator.devices() == told


def test_the_generator_of_the_device_is_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    states: list[Any] = []
    accelerator = used(monkeypatch, get_rng_state=lambda: "state", set_rng_state=states.append)
    accelerator.restore_random(accelerator.random_state())
    accelerator.restore_random(None)
    assert states == ["state"]


def test_a_forked_child_looks_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    accelerator = used(monkeypatch)
    assert accelerator.kind == "xpu"
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: None)
    assert accelerator.kind == "xpu"
    accelerator.forget()
    assert accelerator.kind == ""
