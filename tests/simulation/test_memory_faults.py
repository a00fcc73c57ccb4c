"""What a run says of the memory of a device, held against the ledger of its allocator."""

from __future__ import annotations

import gc
import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from judged import Judged
from trainings import keepers, memory, shortages

from torchtriage import simulation
from torchtriage.examine.run.job import begin
from torchtriage.examine.run.job.accelerator import accelerator
from torchtriage.examine.run.job.start import end
from torchtriage.examine.run.reader.load import read
from torchtriage.examine.run.record import RunRecord
from torchtriage.simulation import Allocation, Costs, Ledger, Simulator
from torchtriage.specialists.tensor_operations_and_memory.probes.events import MemoryPeak, OutOfMemory, Residents
from torchtriage.triage import probes

FOLDER = Path(__file__).parent / "trainings"
PATH = "tests/simulation/trainings"
ROOM = "tensor-operations-and-memory"
MIB = 2**20
CLOSE = 0.05
OWN = 4096  # bytes of the device, at most, in numbers that the watch has read


@dataclass
class Truth:
    """Bytes at the peak, by the ledger: of the tensors of the model and its optimizer, of the gradients that were there,
    of what the step had made by then and let go before it ended, and of all together.
    """

    parameters: int
    states: int
    gradients: int
    made: int
    whole: int

    @classmethod
    def of(cls, training: Any, ledger: Ledger, gradients: int) -> Truth:
        """Of moments that differ by less than the watch itself holds, the one with so many bytes of GRADIENTS: Adam's
        step fills as much here as the backward pass.
        """
        entries = [each for each in ledger.allocations if each.device == 0]
        most = max(each.allocated for each in entries)
        peaks = [number for number, each in enumerate(entries) if each.allocated > most - OWN]
        truths = [cls.at(peak, training, entries) for peak in peaks]
        return min(truths, key=lambda truth: abs(truth.gradients - gradients))

    @classmethod
    def at(cls, at: int, training: Any, entries: Sequence[Allocation]) -> Truth:
        alive: dict[int, Allocation] = {}
        for each in entries[: at + 1]:
            if each.action == "alloc":
                alive[each.address] = each
            elif each.action == "free":
                alive.pop(each.address, None)
        step = entries[at].step
        freed = {each.address for each in entries[at:] if each.action == "free" and each.step == step}
        let_go = {address for address, each in alive.items() if each.step == step and address in freed}
        gradients = training.gradients[step] if step < len(training.gradients) else set()
        values = [value for state in training.optimizer.state.values() for value in state.values()]
        parameters = {each.data_ptr() for each in training.model.parameters()}
        states = {each.data_ptr() for each in values if isinstance(each, torch.Tensor)}

        def size(addresses: set[int]) -> int:
            return sum(each.bytes for address, each in alive.items() if address in addresses)

        return cls(size(parameters), size(states), size(gradients - let_go), size(let_go), size(set(alive)))


class Watched(Judged):
    """A job that has run under all probes, with what is made of its record and what its device did.

    truth: of its peak; None where it ended over an error.
    """

    def __init__(self, record: RunRecord, ledger: Ledger, truth: Truth | None) -> None:
        super().__init__(record, ROOM)
        (self.rank,) = record.ranks
        self.ledger, self.truth = ledger, truth


Run = Callable[..., Watched]
_known: dict[tuple[Callable[..., Any], float], Watched] = {}  # several tests look at one job


@pytest.fixture
def run(simulator: Simulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    jobs: list[Any] = []

    def put(loop: Callable[[Simulator], Any], mebibytes: float = 16 * 1024) -> Watched:
        if (loop, mebibytes) not in _known:
            _known[loop, mebibytes] = _watch(loop, mebibytes)
        return _known[loop, mebibytes]

    def _watch(loop: Callable[[Simulator], Any], mebibytes: float) -> Watched:
        gc.collect()
        simulation.start(devices=2, memory=round(mebibytes * MIB), costs=Costs.free())
        assert torch.sim.memory_allocated() + torch.sim.memory_allocated(1) < OWN
        accelerator.forget()
        (folder := tmp_path / str(len(jobs))).mkdir()
        jobs.append(begin(str(folder), [str(room) for room in probes()]))
        training, error = None, None
        try:
            training = loop(simulator)
        except (RuntimeError, torch.OutOfMemoryError) as caught:
            error = caught
            monkeypatch.setattr(sys, "last_value", error, raising=False)
        end(jobs[-1], error)
        assert not jobs[-1].lost
        jobs[-1].tidy()
        record = read(folder)
        peaks = record.ranks[0].all(MemoryPeak)
        truth = Truth.of(training, simulator.ledger, peaks[-1].gradients) if training is not None and peaks else None
        return Watched(record, simulator.ledger, truth)

    yield put
    for job in jobs:
        job.leave("test")
        job.tidy()
    assert "__init__" not in vars(torch.OutOfMemoryError)


# What fills the device


FULL: dict[str, tuple[Callable[[Simulator], Any], int, set[str]]] = {
    "activations": (memory.activations, 42, {"peak-by-activations"}),
    "states": (memory.states, 102, {"peak-by-states"}),
    "states of Adam": (memory.adam_states, 82, {"peak-by-states"}),
    "gradients of an earlier pass": (memory.accumulated, 82, {"peak-by-states"}),
    "a last layer that is wide": (memory.wide_last_layer, 102, {"peak-by-activations"}),
    "a data set": (memory.data_on_the_device, 82, set()),
}


@pytest.mark.parametrize("name", FULL)
def test_a_full_device_is_told_by_holder_with_the_bytes_of_the_ledger(run: Run, name: str) -> None:
    loop, mebibytes, faults = FULL[name]
    watched = run(loop, mebibytes)
    true, peak = watched.truth, watched.rank.all(MemoryPeak)[-1]
    (residents,) = watched.rank.all(Residents)
    assert watched.faults == faults
    assert (residents.parameters, peak.bytes, peak.gradients) == pytest.approx(
        (true.parameters, true.whole, true.gradients), rel=CLOSE
    )
    (made,), (held,) = (watched.evidence(f"run/peak-by-{each}") for each in ("activations", "states"))
    assert made.value * peak.bytes == pytest.approx(true.made, rel=CLOSE)
    assert held.value * peak.bytes == pytest.approx(true.parameters + true.states + true.gradients, rel=CLOSE)


ROOM_LEFT = {
    "room for more": (memory.activations, 60),
    "a first step that tries what is fastest": (memory.warmed_up, 72),
    "a first pass that tries what is fastest": (memory.warmed_up_in_a_pass, 198),
    "a checkpoint beside the model": (memory.loaded, 82),
    "larger batches in the validation": (memory.evaluated, 84),
    "what the allocator keeps": (memory.reserved, 68),
    "activations that are computed again": (memory.recomputed, 42),
}


@pytest.mark.parametrize("name", ROOM_LEFT)
def test_a_device_that_training_does_not_fill_is_healthy(run: Run, name: str) -> None:
    loop, mebibytes = ROOM_LEFT[name]
    watched = run(loop, mebibytes)
    assert watched.faults == set()
    assert name == "room for more" or max(row.reserved for row in watched.rank.every_step) > 0.65 * mebibytes * MIB


# What runs out

OUT: dict[str, tuple[Callable[[Simulator], Any], int, set[str]]] = {
    "in the forward pass": (shortages.out_in_forward, 42, {"device-out-of-memory", "peak-by-activations"}),
    "in the first one": (shortages.out_at_once, 42, {"device-out-of-memory", "peak-by-activations"}),
    "in the backward pass": (shortages.out_in_backward, 62, {"device-out-of-memory", "peak-by-activations"}),
    "in the first step of Adam": (shortages.out_in_the_optimizer, 66, {"device-out-of-memory", "peak-by-states"}),
    "after the model": (shortages.out_in_the_loss, 42, {"device-out-of-memory", "peak-by-activations"}),
    "in an evaluation": (memory.evaluated, 64, {"device-out-of-memory"}),
    "in the handler": (shortages.tried_again_in_the_handler, 62, {"device-out-of-memory"}),
    "whatever the batch": (
        shortages.smaller_until_nothing_is_left,
        42,
        {"device-out-of-memory", "peak-by-activations"},
    ),
    "in each fifth step": (shortages.out_again_and_again, 42, {"device-out-of-memory", "peak-by-activations"}),
    "in steps that are left out": (shortages.out_and_skipped, 42, {"device-out-of-memory", "peak-by-activations"}),
    "full of something that is kept": (shortages.full_of_tensors, 130, {"device-out-of-memory"}),
    "in pieces": (shortages.holes, 220, {"device-out-of-memory", "fragmentation"}),
    "beside others": (shortages.out_beside_others, 62, {"device-out-of-memory", "other-process-holds-memory"}),
    "beside a context": (shortages.out_beside_a_context, 42, {"device-out-of-memory", "peak-by-activations"}),
}


@pytest.mark.parametrize("name", OUT)
def test_what_runs_out_of_memory_is_told(run: Run, name: str) -> None:
    loop, mebibytes, faults = OUT[name]
    assert run(loop, mebibytes).faults == faults


SURVIVED = {
    "a search upwards": (shortages.largest_batch, 62),
    "a search downwards": (shortages.halved_until_it_fits, 62),
    "one batch": (shortages.one_batch_too_large, 62),
    "a search and nothing else": (shortages.largest_batch_and_no_training, 62),
    "holes that are used": (shortages.holes_that_are_used, 220),
    "others that leave enough": (shortages.beside_others, 62),
}


@pytest.mark.parametrize("name", SURVIVED)
def test_errors_that_a_job_survives_are_healthy(run: Run, name: str) -> None:
    loop, mebibytes = SURVIVED[name]
    watched = run(loop, mebibytes)
    assert watched.faults == set()
    assert watched.rank.has(OutOfMemory) == (name not in {"holes that are used", "others that leave enough"})


def line_of(loop: Callable[..., Any], mark: str) -> int:
    """The one line of LOOP beside which MARK stands."""
    lines, first = inspect.getsourcelines(loop)
    (found,) = [first + number for number, line in enumerate(lines) if line.rstrip().endswith(f"# {mark}")]
    return found


@pytest.mark.parametrize(
    ("loop", "mebibytes", "phase"),
    [
        pytest.param(shortages.out_in_backward, 62, "in the backward pass", id="backward"),
        pytest.param(shortages.out_in_the_optimizer, 66, "in the optimizer's step", id="optimizer"),
        pytest.param(shortages.out_in_the_loss, 42, "in the forward pass", id="loss"),
        pytest.param(shortages.full_of_tensors, 130, "", id="elsewhere"),
        pytest.param(shortages.holes, 220, "", id="holes"),
    ],
)
def test_the_line_that_ran_out_is_told(run: Run, loop: Callable[..., Any], mebibytes: int, phase: str) -> None:
    (told,) = run(loop, mebibytes).evidence("run/device-out-of-memory")
    assert (told.place.path, told.place.line) == (f"{PATH}/shortages.py", line_of(loop, "ends here"))
    assert phase in told.fact


@pytest.mark.parametrize("loop", [shortages.out_in_forward, shortages.out_again_and_again])
def test_within_the_model_it_is_the_line_of_the_layer(run: Run, loop: Callable[..., Any]) -> None:
    (told,) = run(loop, 42).evidence("run/device-out-of-memory")
    assert told.place.line == line_of(memory.Scale.forward, "computes")


def test_what_held_the_memory_is_told_with_the_bytes_of_the_ledger(run: Run) -> None:
    """Of the allocation that failed: what was alive then, by the addresses of parameters and states."""
    watched = run(shortages.out_and_skipped, 42)
    failed = watched.rank.all(OutOfMemory)[-1]
    entries = [each for each in watched.ledger.allocations if each.device == 0]
    true = [each.allocated for each in entries if each.action == "oom"][-1]
    (told,) = watched.evidence("run/device-out-of-memory")
    assert f"tensors held {true / MIB:.2f} MiB" in told.fact
    assert "12 of 36 steps ran out of memory here, and the job caught the error" in told.fact
    model = 6 * 4096 * 4  # layers, width, bytes
    assert (failed.parameters, failed.states, failed.gradients) == (model, model, 0)


def test_what_keeps_the_step_that_failed_is_told(run: Run) -> None:
    (told,) = run(shortages.tried_again_in_the_handler, 62).evidence("run/device-out-of-memory")
    assert "40.00 MiB others that stay" in told.fact
    assert "tried again while the error of the try before was being handled" in told.fact


def test_a_device_that_is_not_the_current_one_is_the_one_that_is_told(run: Run) -> None:
    def elsewhere(simulator: Simulator) -> Any:
        training = memory.Training.of(simulator, layers=2)
        training.model.to("sim:1")
        for _ in range(30):
            training.optimizer.zero_grad()
            training.model(torch.ones(64, 4096).to("sim:1")).mean().backward()
            training.update()
        return training

    watched = run(elsewhere)
    last, entries = watched.rank.every_step[-1], [each for each in watched.ledger.allocations if each.device == 1]
    assert last.peak == max(each.allocated for each in entries)
    assert last.allocated in {each.allocated for each in entries if each.step == last.step}


# Growth, the cache, graphs

KEPT: dict[str, tuple[Callable[[Simulator], Any], set[str]]] = {
    "features": (keepers.features_kept, {"memory-growth"}),
    "outputs": (keepers.outputs_recorded, {"memory-growth"}),
    "a chain": (keepers.chained_without_a_name, {"memory-growth"}),
    "losses": (keepers.losses_kept, {"graph-retained"}),
    "graphs": (keepers.graphs_kept_whole, {"graph-retained"}),
    "lengths that level off": (keepers.lengths_that_level_off, set()),
    "batches that grow": (keepers.batches_that_grow, set()),
    "a window": (keepers.window_of_features, set()),
    "a buffer": (keepers.buffer_allocated_at_once, set()),
    "losses without their graphs": (keepers.losses_detached, set()),
    "the latest losses, of layers that are computed again": (keepers.losses_of_recomputed_layers, set()),
    "a cache that is emptied": (keepers.emptied, {"empty-cache-in-loop"}),
    "a cache that the module of the device empties": (
        keepers.emptied_by_the_module_of_the_device, {"empty-cache-in-loop"},
    ),
    "a cache that is emptied after epochs": (keepers.emptied_after_epochs, set()),
    "a cache that is emptied before training": (keepers.emptied_before_training, set()),
}  # fmt: skip


@pytest.mark.parametrize("name", KEPT)
def test_what_is_kept_on_the_device_or_asked_for_anew_is_told(run: Run, name: str) -> None:
    loop, faults = KEPT[name]
    assert run(loop).faults == faults


@pytest.mark.parametrize(
    ("loop", "marked", "detector"),
    [
        pytest.param(keepers.features_kept, keepers.features_kept, "run/memory-growth", id="a list"),
        pytest.param(keepers.outputs_recorded, keepers.Recorder.record, "run/memory-growth", id="a dict of an object"),
        pytest.param(keepers.losses_kept, keepers.losses_kept, "run/graph-retained", id="losses"),
        pytest.param(keepers.graphs_kept_whole, keepers.graphs_kept_whole, "run/graph-retained", id="a sum"),
    ],
)
def test_who_keeps_it_is_told_with_the_line(
    run: Run, loop: Callable[..., Any], marked: Callable[..., Any], detector: str
) -> None:
    first = run(loop).evidence(detector)[0]
    assert (first.place.path, first.place.line) == (f"{PATH}/keepers.py", line_of(marked, "grows here"))


@pytest.mark.parametrize("loop", [keepers.features_kept, keepers.chained_without_a_name])
def test_growth_is_told_with_the_bytes_of_the_ledger(run: Run, loop: Callable[..., Any]) -> None:
    watched = run(loop)
    ends = {each.step: each.allocated for each in watched.ledger.allocations if each.device == 0}
    steps = sorted(ends)[3:-1]
    (told, *_) = watched.evidence("run/memory-growth")
    true = (ends[steps[-1]] - ends[steps[0]]) / (steps[-1] - steps[0]) / 1024
    assert told.value == pytest.approx(true, rel=CLOSE)


def test_how_often_the_driver_is_asked_is_that_of_the_ledger(run: Run) -> None:
    watched = run(keepers.emptied)
    asked = [each for each in watched.ledger.allocations if each.action == "segment_alloc" and each.step > 0]
    (told,) = watched.evidence("run/empty-cache-in-loop")
    assert f"asked for memory {len(asked) / memory.STEPS:.1f} times" in told.fact
