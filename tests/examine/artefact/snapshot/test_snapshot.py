from __future__ import annotations

import gzip
import json
import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from allocator import BATCH, ENGINE, GIB, KEPT, LOSS, MIB, STATE, TORCH, Allocator, Job, OutOfMemoryError, layer, stack
from mutated import mutations

from torchtriage.catalog.load import catalog
from torchtriage.core.evidence import Inconclusive, Observed
from torchtriage.diagnose import weigh
from torchtriage.examine.artefact.snapshot import Snapshot, measurements, read
from torchtriage.examine.artefact.snapshot.summary import SAMPLE, summarise
from torchtriage.examine.detector import perform
from torchtriage.specialists.tensor_operations_and_memory.readings import makers
from torchtriage.specialists.tensor_operations_and_memory.readings import snapshots as readings
from torchtriage.triage import read as triaged

DETECTORS = (
    readings.fragmentation, readings.peak_by_activations, readings.peak_by_states, readings.memory_growth,
    readings.graph_retained,
)  # fmt: skip


def dumped(folder: Path, snapshot: dict[str, Any], name: str = "snapshot.pickle") -> str:
    (folder / name).write_bytes(pickle.dumps(snapshot))
    return str(folder / name)


def faults(noun: Snapshot) -> set[str]:
    return {finding.fault.slug for finding in weigh.findings(perform(DETECTORS, noun), catalog())}


def told(noun: Snapshot, slug: str) -> list[tuple[str, str]]:
    findings = weigh.findings(perform(DETECTORS, noun), catalog())
    return [(str(item.place), item.fact) for found in findings if found.fault.slug == slug for item in found.evidence]


def healthy() -> Allocator:
    job = Job(Allocator()).build()
    for _ in range(60):
        job.step()
    return job.device


def leaking() -> Allocator:
    job = Job(Allocator()).build()
    for _ in range(60):
        job.step()
        job.device.malloc(2 * MIB, KEPT, "kept")
    return job.device


def leaking_for_long() -> Allocator:
    """As many allocations in each step as divide those between two samples."""
    job = Job(Allocator(), layers=2).build()
    for _ in range(2000):
        job.step()
        job.device.malloc(MIB // 16, KEPT, "kept")
    return job.device


def retained() -> Allocator:
    job = Job(Allocator(64 * GIB)).build()
    for _ in range(40):
        job.step(keeps=True)
    return job.device


def one_long_pass() -> Allocator:
    """A hundred layers in a loop, which all have one stack; the history ends within their first forward pass."""
    device = Allocator(4 * GIB)
    Job(device, layers=2).build()
    with pytest.raises(OutOfMemoryError):
        one_pass(device, 500)
    return device


def one_pass(device: Allocator, layers: int) -> None:
    for _ in range(layers):
        device.malloc(10 * MIB, layer(0), "activations")
        device.free(device.malloc(30 * MIB, layer(1), "activations"), layer(1))


def checkpointed() -> Allocator:
    """A backward pass that computes each layer again, and leaves a gradient for each."""
    device = Allocator(16 * GIB)
    again = stack(
        f"{TORCH}/utils/checkpoint.py:9:recompute_fn",
        *(f"{each['filename']}:{each['line']}:{each['name']}" for each in layer(0)),
    )
    for _ in range(300):
        passing = device.malloc(20 * MIB, again, "activations")
        device.malloc(2 * MIB, ENGINE, "gradients")
        device.free(passing, ENGINE)
    return device


def first_optimizer_step() -> Allocator:
    """The history of one step whose states are made all over it; operations of the forward pass run through autograd."""
    device = Allocator()
    bound = [*stack("??:0:torch::autograd::THPVariable_to", "??:0:torch::autograd::VariableType::mul"), *layer(0)]
    for n in range(200):
        device.free(device.malloc(MIB, [bound, ENGINE][n % 2], "passing"))
        device.malloc(MIB, STATE, "states")
    return device


def windowed() -> Allocator:
    """The latest eight outputs are kept."""
    job, kept = Job(Allocator()).build(), []
    for _ in range(100):
        job.step()
        kept.append(job.device.malloc(8 * MIB, KEPT, "kept"))
        if len(kept) > 8:
            job.device.free(kept.pop(0), KEPT)
    return job.device


def logging() -> Allocator:
    """Detached losses are kept."""
    job = Job(Allocator()).build()
    for _ in range(60):
        job.step()
        job.device.malloc(4, LOSS, "kept")
    return job.device


def failing(job: Job) -> Allocator:
    job.build()
    with pytest.raises(OutOfMemoryError):
        job.step()
    return job.device


def too_large_a_batch() -> Allocator:
    return failing(Job(Allocator(2 * GIB), activation=160 * MIB))


def too_large_a_model() -> Allocator:
    return failing(Job(Allocator(2 * GIB), parameter=70 * MIB, activation=4 * MIB))


def looking_for_the_largest_batch() -> Allocator:
    """The batch that did not fit is let go, and the job goes on with a smaller one."""
    device = too_large_a_batch()
    for block in [each for each in device._by_addr.values() if each.state == "active_allocated"]:
        device.free(block.addr, KEPT)
    job = Job(device).build()
    for _ in range(40):
        job.step()
    return device


def in_pieces() -> Allocator:
    """Every other block of a full device is let go: half of it is free, and nowhere 100 MiB of it in one piece."""
    device = Allocator(2 * GIB)
    blocks = [device.malloc(9 * MIB, layer(n % 4), "activations") for n in range(196)]
    for addr in blocks[::2]:
        device.free(addr, KEPT)
    with pytest.raises(OutOfMemoryError):
        device.malloc(100 * MIB, layer(9), "activations")
    return device


JOBS = {
    "healthy": (healthy, set()),
    "a window of the latest": (windowed, set()),
    "detached losses": (logging, set()),
    "a search for the largest batch": (looking_for_the_largest_batch, set()),
    "a leak": (leaking, {"memory-growth"}),
    "a leak over many steps": (leaking_for_long, {"memory-growth"}),
    "graphs that are kept": (retained, {"memory-growth", "graph-retained"}),
    "too large a batch": (too_large_a_batch, {"peak-by-activations"}),
    "too large a model": (too_large_a_model, {"peak-by-states"}),
    "one pass over equal layers": (one_long_pass, {"peak-by-activations"}),
    "states that are made all over it": (first_optimizer_step, set()),
    "a pass that computes again": (checkpointed, set()),
    "in pieces": (in_pieces, {"fragmentation", "peak-by-activations"}),
}


@pytest.mark.parametrize(("job", "slugs"), JOBS.values(), ids=JOBS)
def test_faults_are_those_that_were_planted(tmp_path: Path, job: Any, slugs: set[str]) -> None:
    noun = read([dumped(tmp_path, job().snapshot())])
    assert noun.inconclusive == ()
    assert faults(noun) == slugs


@pytest.mark.parametrize("native", [True, False], ids=["stacks of C++ too", "stacks of Python"])
@pytest.mark.parametrize("job", [{"activation": 160 * MIB}, {"parameter": 70 * MIB, "activation": 4 * MIB}], ids=str)
def test_what_is_in_use_is_told_by_what_it_is_for(tmp_path: Path, job: dict[str, int], native: bool) -> None:
    device = failing(Job(Allocator(2 * GIB), native=native, **job))
    (memory,) = read([dumped(tmp_path, device.snapshot())]).memories
    found, truth = makers.parts(memory), device.alive
    assert memory.device.at.used == sum(truth.values())
    assert found[makers.PARAMETERS] == truth["parameters"]
    assert found[makers.STATES] == truth["states"]
    assert found[makers.ACTIVATIONS] == truth["activations"]
    assert found[makers.OTHER] == truth["batch"]
    assert found[makers.GRADIENTS] + found[makers.BACKWARD] == truth["gradients"] + truth["passing"]


def test_gradients_that_have_been_there_for_long_are_told_from_passing_results(tmp_path: Path) -> None:
    job = Job(Allocator(), layers=100, parameter=MIB, activation=MIB).build()
    job.step()
    (memory,) = read([dumped(tmp_path, job.device.snapshot())]).memories
    found = makers.parts(memory)
    assert found[makers.GRADIENTS] >= 0.4 * job.device.alive["gradients"]


def test_the_allocation_that_failed_is_told_with_what_would_have_to_be_less(tmp_path: Path) -> None:
    device = too_large_a_batch()
    (place, fact), *lines = told(read([dumped(tmp_path, device.snapshot())]), "peak-by-activations")
    assert place.startswith("/job/model.py:3")
    assert "160.00 MiB were asked for at /job/model.py" in fact
    assert "too few: in use were" in fact
    assert "of activations, " in fact
    assert all(line.startswith("/job/model.py:") and "of activations in" in fact for line, fact in lines)


def test_a_device_in_pieces_is_told_with_the_largest_of_them(tmp_path: Path) -> None:
    device = in_pieces()
    ((_, fact),) = told(read([dumped(tmp_path, device.snapshot())]), "fragmentation")
    assert "100.00 MiB were asked for" in fact
    assert "196 pieces, the largest 9.00 MiB" in fact


def test_growth_names_the_line_and_its_rate(tmp_path: Path) -> None:
    ((place, fact),) = told(read([dumped(tmp_path, leaking().snapshot())]), "memory-growth")
    assert place == "/job/train.py:46"
    assert "60 blocks of 120.00 MiB" in fact
    assert "2.00 MiB more each time that it runs" in fact
    ((_, fact),) = told(read([dumped(tmp_path, leaking().snapshot(marks=60))]), "memory-growth")
    assert "2.00 MiB more each step" in fact


def test_blocks_that_pile_up_within_one_pass_are_inconclusive(tmp_path: Path) -> None:
    (seen,) = perform([readings.memory_growth], read([dumped(tmp_path, one_long_pass().snapshot())]))
    assert isinstance(seen, Inconclusive)
    assert "one pass over many equal layers looks the same" in seen.why


def test_a_ring_that_has_lost_its_beginning_still_adds_up(tmp_path: Path) -> None:
    device = leaking()
    (memory,) = read([dumped(tmp_path, device.snapshot(most=1000))]).memories
    assert memory.device.used == sum(device.alive.values())
    assert memory.device.before > 0
    (whole,) = read([dumped(tmp_path, device.snapshot())]).memories
    assert memory.device.peak == whole.device.peak


def test_peak_and_timeline_are_those_of_the_allocator(tmp_path: Path) -> None:
    device = healthy()
    used = peak = 0
    for entry in device.entries:
        used += {"alloc": 1, "free_completed": -1}.get(entry["action"], 0) * entry["size"]
        peak = max(peak, used)
    noun = read([dumped(tmp_path, device.snapshot())])
    (memory,) = noun.memories
    assert (memory.device.peak, memory.device.used) == (peak, used)
    told = measurements(noun)["devices"][0]
    assert json.loads(json.dumps(told)) == told
    lengths = Counter(len(column) for column in told["timeline"].values())
    assert lengths == {400: 4}
    assert max(told["timeline"]["used"]) == peak


def test_blocks_that_wait_for_a_stream_are_in_use(tmp_path: Path) -> None:
    device = Allocator()
    addr = device.malloc(30 * MIB, BATCH)
    device.free(addr, waits=True)
    snapshot = device.snapshot()
    assert snapshot["segments"][0]["blocks"][0]["state"] == "active_awaiting_free"
    (memory,) = read([dumped(tmp_path, snapshot)]).memories
    assert memory.device.used == 30 * MIB
    assert memory.device.free.bytes == 0


def of_cpp(snapshot: dict[str, Any]) -> dict[str, Any]:
    """As torch::cuda::_memory_snapshot_pickled has it: no pools, another word for what waits, no empty stacks."""
    for segment in snapshot["segments"]:
        for block in segment["blocks"]:
            block["state"] = block["state"].replace("awaiting", "pending")
    for entry in snapshot["device_traces"][0]:
        del entry["pool_id"], entry["compile_context"], entry["user_metadata"]
    return {name: snapshot[name] for name in ("segments", "device_traces", "allocator_settings")}


def of_old(snapshot: dict[str, Any]) -> dict[str, Any]:
    """As torch 2.0 has it: blocks without an address and with a history, entries without a time. What is freed is rounded."""
    for segment in snapshot["segments"]:
        for block in segment["blocks"]:
            past = {
                "addr": block.pop("address"),
                "real_size": block.pop("requested_size"),
                "frames": block.pop("frames"),
            }
            block["history"] = [past] if block["state"] != "inactive" else []
    for entry in snapshot["device_traces"][0]:
        if entry["action"].startswith("free"):
            entry["size"] = -(-entry["size"] // 512) * 512
        del entry["time_us"], entry["pool_id"], entry["compile_context"], entry["user_metadata"]
    return {name: snapshot[name] for name in ("segments", "device_traces")}


@pytest.mark.parametrize("written", [of_cpp, of_old])
@pytest.mark.parametrize("job", [leaking, too_large_a_batch, in_pieces])
def test_other_writers_of_snapshots_are_read_alike(tmp_path: Path, written: Any, job: Any) -> None:
    device = job()
    other = read([dumped(tmp_path, written(pickle.loads(pickle.dumps(device.snapshot()))), "other")])
    same = read([dumped(tmp_path, device.snapshot())])
    assert faults(other) == faults(same)
    assert other.memories[0].device.peak == same.memories[0].device.peak
    assert makers.parts(other.memories[0]) == makers.parts(same.memories[0])


def test_segments_that_expand_are_laid_out_as_one(tmp_path: Path) -> None:
    frames, entries = layer(0), []
    for n in range(4):
        entries.append({"action": "segment_map", "addr": 2**40 + n * 20 * MIB, "size": 20 * MIB, "frames": frames})
        entries.append({"action": "alloc", "addr": 2**40 + n * 20 * MIB, "size": 20 * MIB, "frames": frames})
    entries += [
        {"action": "free_completed", "addr": 2**40 + n * 20 * MIB, "size": 20 * MIB, "frames": []} for n in (1, 2)
    ]
    entries.append({"action": "oom", "size": 60 * MIB, "device_free": 0, "frames": frames})
    used = {"size": 20 * MIB, "requested_size": 20 * MIB, "state": "active_allocated", "frames": frames}
    blocks = [used, {"size": 40 * MIB, "state": "inactive"}, used]
    segment = {"device": 0, "address": 2**40, "total_size": 80 * MIB, "is_expandable": True, "blocks": blocks}
    (memory,) = read([dumped(tmp_path, {"segments": [segment], "device_traces": [entries]})]).memories
    (failure,) = memory.device.failed
    assert (failure.used, failure.reserved, failure.blocks, failure.largest) == (40 * MIB, 80 * MIB, 1, 40 * MIB)


def test_devices_and_files_are_told_apart(tmp_path: Path) -> None:
    one, two = leaking(), Job(Allocator(device=1)).build().device
    both = one.snapshot()
    both["segments"] += two.snapshot()["segments"]
    both["device_traces"] = [one.entries, two.entries, []]
    noun = read([dumped(tmp_path, both)])
    assert [each.name for each in noun.memories] == ["device 0 of snapshot.pickle", "device 1 of snapshot.pickle"]
    assert told(noun, "memory-growth")[0][1].startswith("device 0 of snapshot.pickle: 60 blocks")


def test_without_a_history_the_state_alone_is_told(tmp_path: Path) -> None:
    device = Job(Allocator(recorded=False)).build().device
    noun = read([dumped(tmp_path, device.snapshot())])
    assert [each.why.split(" ", 1)[1] for each in noun.inconclusive] == [
        "holds no history: what grows, what failed and what the peak consists of cannot be told"
    ]
    assert measurements(noun)["devices"][0]["used"] == 32 * MIB


def test_a_failure_of_what_nobody_recorded_is_inconclusive(tmp_path: Path) -> None:
    device = too_large_a_batch()
    snapshot = device.snapshot(most=1)
    for segment in snapshot["segments"]:
        for block in segment["blocks"]:
            block["frames"] = []
    noun = read([dumped(tmp_path, snapshot)])
    seen = [*perform([readings.peak_by_activations], noun), *noun.inconclusive]
    assert all(isinstance(each, Inconclusive) and "nobody recorded" in each.why for each in seen)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"segments": 3}, "it has no segments"),
        ({"device_traces": [[3]]}, "TypeError"),
        ({"device_traces": [[{"action": []}]]}, "TypeError"),
        ({"segments": [{"blocks": [{}]}]}, "KeyError"),
    ],
)
def test_what_is_no_snapshot_is_told(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    noun = read([dumped(tmp_path, {**healthy().snapshot(), **change})])
    assert noun.memories == ()
    assert words in noun.inconclusive[0].why


def test_the_same_entries_over_and_over_are_refused(tmp_path: Path) -> None:
    entry = {"action": "alloc", "addr": 1, "size": 1, "frames": []}
    trace = [entry] * 1000
    noun = read([dumped(tmp_path, {"segments": [], "device_traces": [trace] * 1000})])
    assert "1,000,000 entries and blocks in" in noun.inconclusive[0].why


def test_the_sample_is_looked_at_in_all_its_parts() -> None:
    (device,) = summarise(SAMPLE, 2**20)["devices"]
    assert device["failed"]
    assert device["kept"]
    assert device["timeline"]["entry"]


def test_the_snapshot_of_the_docs_is_that_of_the_allocator() -> None:
    kept = Path(__file__).parents[3] / "cases/artefacts/snapshot.pickle.gz"
    assert pickle.loads(gzip.decompress(kept.read_bytes())) == too_large_a_batch().snapshot()


def test_a_snapshot_is_known_by_its_history_too(tmp_path: Path) -> None:
    snapshot = healthy().snapshot()
    case = triaged([dumped(tmp_path, {name: snapshot[name] for name in ("device_traces", "segments")})])
    assert case.measurements["snapshot"]["devices"][0]["entries"] == len(snapshot["device_traces"][0])


def test_the_job_ends_in_one_case(tmp_path: Path) -> None:
    case = triaged([dumped(tmp_path, too_large_a_model().snapshot())])
    assert [finding.fault.slug for finding in case.findings] == ["peak-by-states"]
    assert case.measurements["snapshot"]["devices"][0]["failed"]


@pytest.mark.parametrize(
    ("frames", "purpose"),
    [
        (stack("/x/site-packages/bitsandbytes/optim/optimizer.py:5:init_state", "/job/train.py:3:f"), makers.STATES),
        (stack("/x/site-packages/deepspeed/ops/adam/fused_adam.py:5:step", "/job/train.py:3:f"), makers.STATES),
        (stack("/x/site-packages/torch/distributed/fsdp/_fully_shard/_fsdp_param.py:9:all_gather_outputs"), makers.PARAMETERS),
        (stack("??:0:c10d::Reducer::initialize_buckets", "/x/torch/nn/parallel/distributed.py:9:_ddp_init_helper"), makers.GRADIENTS),
        (stack("??:0:at::cuda::getCUDABlasLtWorkspace", "/job/model.py:3:forward"), makers.WORKSPACE),
        (stack("/x/torch/utils/checkpoint.py:9:recompute_fn", "??:0:torch::autograd::Engine::execute"), makers.ACTIVATIONS),
        (stack("/tmp/cache/abc.py:9:call", "/job/model.py:3:forward", "??:0:torch::autograd::PyNode::apply"), makers.BACKWARD),
        (stack("/job/data.py:3:prefetch"), makers.OTHER),
        (stack("/x/site-packages/torch/nn/modules/linear.py:9:__init__", "/job/train.py:3:f"), makers.PARAMETERS),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)  # fmt: skip
def test_rules_on_stacks(tmp_path: Path, frames: Any, purpose: str) -> None:
    device = Allocator()
    device.malloc(30 * MIB, frames)
    (memory,) = read([dumped(tmp_path, device.snapshot())]).memories
    assert +makers.parts(memory) == {purpose: 30 * MIB}


def test_mutated_snapshots_are_read_or_refused(tmp_path: Path) -> None:
    job = Job(Allocator(GIB), layers=2).build()
    job.step()
    seeds = [pickle.dumps(job.device.snapshot(), protocol) for protocol in (2, 4)]
    paths = []
    for number, data in enumerate(mutations(seeds, 2000)):
        (tmp_path / f"{number}").write_bytes(data)
        paths.append(str(tmp_path / f"{number}"))
    noun = read(paths)
    assert noun.memories
    assert len(noun.memories) + len(noun.inconclusive) >= len(paths)
    for outcome in perform(DETECTORS, noun):
        assert isinstance(outcome, Observed) or "failed" not in outcome.why
    json.dumps(measurements(noun))
