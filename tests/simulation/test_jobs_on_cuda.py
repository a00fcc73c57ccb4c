"""The jobs that tests run on the simulated device, on CUDA where there is one: their numbers, and what is said of them."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from judged import Judged

from torchtriage import simulation
from torchtriage.examine.run.job import begin
from torchtriage.examine.run.job.accelerator import accelerator
from torchtriage.examine.run.reader.load import read
from torchtriage.simulation import Costs, Simulator
from torchtriage.triage import probes

HERE = Path(__file__).parent
SCALE = 30
"""Loops of limited.py last seconds, which cost nothing on the simulated clock; here they last parts of them.

At a hundredth a step of the job lasted as long as what the simulated device itself computes for it, and a machine with
little else to do hid the wait in one of three runs.
"""

LIMITED = [
    "compute", "launch", "two items", "an item at the end", "an item each 50 steps", "metrics", "a branch", "rollouts",
    "sums on the device", "evaluations",
]  # fmt: skip
"""All but those that are limited by copies, which on a real device would be of gigabytes."""


def module(name: str, device: str = "cuda") -> ModuleType:
    """A module of this folder as one for DEVICE."""
    made = sys.modules[name] = ModuleType(name)  # where dataclasses look for their annotations
    source = (HERE / f"{name}.py").read_text().replace('"sim"', f'"{device}"')
    made.__file__ = str(HERE / f"{name}.py")
    exec(compile(source, made.__file__, "exec"), vars(made))
    return made


class Host:
    """What loops ask of a simulator, on the clock of the machine."""

    def __init__(self, at_step: Callable[[int], object] = lambda _: None) -> None:
        self.steps, self.at_step = 0, at_step

    def host(self, nanoseconds: int) -> None:
        until = time.perf_counter_ns() + nanoseconds // SCALE
        while time.perf_counter_ns() < until:
            pass

    def step(self) -> None:
        self.steps += 1
        self.at_step(self.steps)


@cache
def cycles_per_nanosecond() -> float:
    before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda._sleep(1_000_000)  # loads the kernel
    before.record()
    torch.cuda._sleep(100_000_000)
    after.record()
    after.synchronize()
    return 100_000_000 / (before.elapsed_time(after) * 1e6)


def occupy(nanoseconds: int) -> None:
    """Keeps a CUDA device busy."""
    torch.cuda._sleep(int(nanoseconds * cycles_per_nanosecond()))


def slow(model: torch.nn.Module, product: int) -> None:
    """Makes each product of MODEL's linear layers cost PRODUCT nanoseconds: one going forward, two going back."""
    for layer in model.modules():
        if isinstance(layer, torch.nn.Linear):
            layer.register_forward_hook(lambda *_: occupy(product))
            layer.register_full_backward_hook(lambda *_: occupy(2 * product))


def judged(limited: ModuleType, name: str, host: Any, folder: Path, steps: int) -> tuple[set[str], set[str]]:
    """Faults and verdicts of a job of limited.py that has run under all probes."""
    job = limited.JOBS[name]
    parts = limited.Parts.of(host, steps, width=job.width)
    if job.costs is limited.FAST_HOST and next(parts.model.parameters()).is_cuda:
        cycles_per_nanosecond()  # before the probes look on
        slow(parts.model, limited.PRODUCTS["mm"] // SCALE)
    accelerator.forget()
    probing = begin(str(folder), [str(room) for room in probes()])
    try:
        job.loop(parts)
        torch.accelerator.synchronize()
        probing.leave("exit")
        assert not probing.lost
    finally:
        probing.leave("test")
        probing.tidy()
    seen = Judged(read(folder))
    return seen.faults, seen.verdicts


@pytest.mark.gpu
@pytest.mark.parametrize("name", LIMITED)
def test_what_limits_a_step_is_found_on_cuda(name: str, tmp_path: Path) -> None:
    limited = module("trainings/limited")
    job = limited.JOBS[name]
    assert judged(limited, name, Host(), tmp_path, 60) == (set(job.faults), set(job.verdicts))


def test_the_same_way_a_loop_is_judged_on_the_simulated_device_in_real_time(
    simulator: Simulator, tmp_path: Path
) -> None:
    limited = module("trainings/limited", "sim")
    products = {name: cost // SCALE for name, cost in limited.PRODUCTS.items()}
    simulation.start(devices=2, costs=Costs.free(kernels=products), realtime=True)
    assert judged(limited, "two items", Host(), tmp_path, 30) == ({"sync-bound"}, set())


@pytest.mark.gpu
def test_after_the_first_steps_no_probe_waits_for_cuda(tmp_path: Path) -> None:
    jobs = module("test_watched_jobs")
    mode = torch.cuda.set_sync_debug_mode
    probing = begin(str(tmp_path), [str(room) for room in probes()])
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        jobs.train(Host(lambda step: step == 2 and mode("warn")))
        mode("default")
    probing.leave("exit")
    probing.tidy()
    waits = [each for each in said if "synchronizing CUDA operation" in str(each.message)]
    ours = [(each.filename, each.lineno) for each in waits if each.filename.startswith(jobs.OURS)]
    assert [(path, line) for path, line in ours if not path.endswith(jobs.PASSING_ON)] == []


@pytest.mark.gpu
def test_a_job_that_is_watched_on_cuda_trains_to_the_same_bits(tmp_path: Path) -> None:
    jobs = module("test_watched_jobs")
    plain = jobs.train(Host(), 96)
    probing = begin(str(tmp_path), [str(room) for room in probes()])
    watched = jobs.train(Host(), 96)
    probing.leave("exit")
    probing.tidy()
    assert not probing.lost
    assert all(torch.equal(one, other) for one, other in zip(plain, watched, strict=True))


@pytest.mark.gpu
@pytest.mark.parametrize("model", ["cnn", "transformer"])
def test_trainings_on_cuda_have_the_losses_of_the_cpu_to_three_digits(model: str) -> None:
    training = module("test_training")
    optimizer = "adamw, foreach"
    cpu, cuda = (training.train(device, model, optimizer)[0] for device in ("cpu", "cuda"))
    assert cuda == pytest.approx(cpu, rel=1e-3)


@pytest.mark.gpu
def test_a_language_model_and_recurrent_layers_learn_on_cuda() -> None:
    language = module("trainings/language").train("cuda", torch.float16)
    sequences = module("trainings/sequences").train("cuda", torch.nn.LSTM, steps=8)
    assert language[-1] < language[0] / 2
    assert sequences[-1] < sequences[0]
