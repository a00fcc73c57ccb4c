"""What the simulation says of waits, copies, memory and autocast, held against CUDA itself where there is one.

The proofs of the pages (proofs/) run there, too: `make gpu`.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest
import torch
from on_cuda import summary

CYCLES = 200_000_000
"""For which the device is kept busy: a tenth of a second at 2 GHz, and no device is as fast as 4 GHz."""

EARLY = 0.02
"""Seconds after which a call that waits for nothing is over; one that waits takes twice as long at least."""


def tables(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parent / f"test_{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def waits(call: Callable[[], object]) -> bool:
    """Whether CALL takes as long as the device is busy with something else."""
    call()  # loads kernels
    torch.cuda.synchronize()
    torch.cuda._sleep(CYCLES)
    before = time.perf_counter()
    call()
    taken = time.perf_counter() - before
    torch.cuda.synchronize()
    return taken > EARLY


@pytest.mark.gpu
def test_cuda_calls_the_calls_synchronizing_that_wait_in_the_simulation() -> None:
    synchronisations = tables("synchronisations")
    explicit = {"device", "stream", "event"}  # torch's debug mode lets these pass
    expected = {name: call not in explicit for name, (_, call) in synchronisations.WAITING.items()}
    expected |= dict.fromkeys(synchronisations.FREE, False)
    calls = {name: call for name, (call, _) in synchronisations.WAITING.items()} | synchronisations.FREE
    found = {}
    for name, call in calls.items():
        x = torch.ones(4, 4, device="cuda")
        torch.cuda.set_sync_debug_mode("error")
        try:
            call(x)
            found[name] = False
        except RuntimeError as error:
            found[name] = "synchronizing CUDA operation" in str(error) or str(error)
        finally:
            torch.cuda.set_sync_debug_mode("default")
    assert found == expected


@pytest.mark.gpu
def test_cuda_waits_where_the_simulation_says_so_and_nowhere_else() -> None:
    synchronisations = tables("synchronisations")
    x = torch.ones(4, 4, device="cuda")
    calls = {name: call for name, (call, _) in synchronisations.WAITING.items()} | synchronisations.FREE
    found = {name: waits(lambda call=call: call(x.clone())) for name, call in calls.items()}
    assert found == {name: name in synchronisations.WAITING for name in calls}


@pytest.mark.gpu
def test_copies_wait_on_cuda_as_in_the_simulation() -> None:
    copies = tables("copies")
    copies.DEVICE = "cuda"
    rows = copies.COPIES if torch.cuda.device_count() > 1 else copies.COPIES[:-1]
    found = [waits(partial(copy, make())) for make, copy, _, _ in rows]
    assert found == [host > copies.LAUNCH for _, _, _, host in rows]


@pytest.mark.gpu
def test_the_allocator_of_cuda_takes_what_the_simulated_one_takes() -> None:
    rows = tables("memory").ROUNDED
    found = []
    for asked, _, _ in rows:
        torch.cuda.empty_cache()
        allocated, reserved = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
        block = torch.empty(asked, dtype=torch.uint8, device="cuda")
        found.append((asked, torch.cuda.memory_allocated() - allocated, torch.cuda.memory_reserved() - reserved))
        del block
    assert found == rows


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_autocast_on_cuda_has_the_lists_of_the_simulation(dtype: torch.dtype) -> None:
    training = tables("training")
    assert training.computed_under_autocast("cuda", dtype) == training.lists_of_cuda(dtype)


def test_a_page_is_proven_on_cuda_when_all_of_its_tests_that_ran_have_passed() -> None:
    folder = "tests/simulation/proofs"
    outcomes = {
        f"{folder}/test_whole.py::test_one[cuda]": "passed",
        f"{folder}/test_whole.py::test_other[cuda]": "passed",
        f"{folder}/test_half_right.py::test_one[cuda]": "passed",
        f"{folder}/test_half_right.py::test_other[cuda]": "failed",
        f"{folder}/test_in_part.py::test_one[cuda]": "passed",
        f"{folder}/test_in_part.py::test_other[cuda]": "skipped",
        f"{folder}/test_not_at_all.py::test_one[cuda]": "skipped",
        "tests/simulation/test_on_cuda.py::test_copies": "passed",
    }
    found = summary(outcomes, {"device": "A device"})
    assert found == {"device": "A device", "passed": ["in-part", "whole"], "failed": ["half-right"]}
