"""Proofs of the pages on a device: the simulated one, and with `pytest -m gpu` a real one."""

from __future__ import annotations

import gc
import json
import subprocess
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from devices import CudaDevice, Device, SimulatedDevice
from torch import distributed

from torchtriage import triage
from torchtriage.simulation import Simulator

RANK = Path(__file__).with_name("rank.py")

Ranks = Callable[..., dict[str, list[Any]]]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "device" in metafunc.fixturenames:
        on = ["sim", pytest.param("cuda", marks=pytest.mark.gpu)]
        metafunc.parametrize("device", on, indirect=True, scope="function")


@pytest.fixture
def device(request: pytest.FixtureRequest) -> Iterator[Device]:
    """A device on which nothing costs anything unless the proof says so, with all of its memory free."""
    if request.param == "sim":
        yield request.getfixturevalue("simulated")
        return
    torch.manual_seed(0)
    warm = torch.nn.Linear(8, 8).to("cuda")(torch.ones(8, 8, device="cuda"))
    warm.sum().backward()  # libraries take their memory before a proof counts its own
    yield CudaDevice()
    torch.cuda.set_per_process_memory_fraction(1.0)
    torch.cuda.empty_cache()


@pytest.fixture
def simulated(simulator: Simulator) -> SimulatedDevice:
    """The simulated device, for what only its ledger tells."""
    gc.collect()
    simulator.reset()
    return SimulatedDevice(simulator)


Logged = Callable[[BaseException], set[str]]


@pytest.fixture
def logged(tmp_path: Path) -> Logged:
    """The faults that are read from the log of a job which an error has ended."""

    def find(error: BaseException) -> set[str]:
        log = tmp_path / "job.log"
        log.write_text("step 0 loss 0.5\n" + "".join(traceback.format_exception(error)))
        return {finding.fault.slug for finding in triage.read([log]).findings}

    return find


@pytest.fixture
def two(device: Device) -> None:
    if device.module.device_count() < 2:
        pytest.skip("needs two devices")


@pytest.fixture
def group(device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """`init_process_group(backend)` makes a group of this process alone."""
    begin, store = distributed.init_process_group, distributed.FileStore(str(tmp_path / "store"), 1)
    monkeypatch.setattr(
        distributed, "init_process_group", lambda backend: begin(backend, store=store, rank=0, world_size=1)
    )
    monkeypatch.setenv("LOCAL_RANK", "0")
    yield
    distributed.destroy_process_group()


@pytest.fixture
def ranks(device: Device, two: None, python: str, tmp_path: Path) -> Ranks:
    """What a piece of code leaves in `result` on two ranks, by section and rank: ranks(slug, body).

    The body sees device, shown (what the section defines), rank, section and torch.
    """

    def run(slug: str, body: str) -> dict[str, list[Any]]:
        given = {"device": device.name, "slug": slug, "body": body}
        started = [
            subprocess.Popen(
                [python, str(RANK), json.dumps(given | {"rank": rank}), str(tmp_path)],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )
            for rank in (0, 1)
        ]  # fmt: skip
        said = [each.communicate(timeout=240) for each in started]
        assert {each.returncode for each in started} == {0}, "\n".join(errors for _, errors in said)
        results = [json.loads(out.splitlines()[-1]) for out, _ in said]
        return {section: [each[section] for each in results] for section in ("Bad", "Good")}

    return run
