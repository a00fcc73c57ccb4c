"""Jobs with a planted cause, and what a tool should say of each: no more and no less."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from traced.layout import LAYOUTS, written
from traced.simulated import MS, US, Meeting, Rank, performed

GEMM = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn"
GELU = "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&)>"
ADAM = "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<FusedAdamMathFunctor<float, 4>>"
STEPS, LAYERS, BUCKETS = 8, 24, 4


@dataclass(frozen=True)
class Plan:
    """One step, times in nanoseconds. late: of rank LATE alone, and in which phase."""

    data: int = 50 * US
    kernel: int = 400 * US
    cost: int = 25 * US
    items: int = 0
    nbytes: int = 2**20
    copy: int = 100 * US
    pinned: bool = True
    python: int = 0
    bucket: int = 25 * 2**20
    transfer: int = 800 * US
    buckets: int = BUCKETS
    memory: bool = False
    late: int = -1
    more: int = 0
    phase: str = ""


@dataclass(frozen=True)
class Job:
    """A plan for so many ranks; faults, verdicts: all that are to be found."""

    name: str
    plan: Plan
    world: int
    seed: int
    faults: frozenset[str]
    verdicts: frozenset[str]
    steps: int = STEPS
    layers: int = LAYERS
    wrapped: bool = False


def trained(rank: Rank, job: Job) -> Meeting:
    """All steps of one rank."""
    for number in range(job.steps):
        begin = rank.now
        yield from _step(rank, job)
        rank.step(number + 3, begin)


def _step(rank: Rank, job: Job) -> Meeting:
    plan = job.plan
    extra = plan.more if rank.number == plan.late else 0
    rank.data(rank.jittered(plan.data) + (extra if plan.phase == "input" else 0))
    if plan.python or (extra and plan.phase == "host"):
        rank.work(plan.python + (extra if plan.phase == "host" else 0))
    rank.copy(plan.nbytes, rank.jittered(plan.copy), plan.pinned)
    kernel = plan.kernel + (extra // (3 * job.layers) if plan.phase == "compute" else 0)
    for layer in range(job.layers):
        _layer(rank, job, kernel)
        if plan.items and layer % max(job.layers // plan.items, 1) == 0:
            rank.item()
    for layer in range(job.layers):
        _layer(rank, job, 2 * kernel)
        if rank.world > 1 and (layer + 1) % (job.layers // plan.buckets) == 0:
            yield from rank.all_reduce(plan.bucket, plan.transfer)
    rank.join()
    rank.event("user_annotation", "Optimizer.step#AdamW.step", rank.now, 4 * plan.cost)
    for _ in range(2):
        rank.operator("aten::_fused_adamw_", ADAM, plan.kernel, plan.cost)


def _layer(rank: Rank, job: Job, kernel: int) -> None:
    """A product, or with plan.memory something of each element, whose shapes say which of both it is."""
    plan = job.plan
    if job.wrapped:
        rank.wrapped(plan.cost + 2 * US)
    if plan.memory:
        elements = int(kernel * 1.5e3 // 8)  # read and written in float32 at 1.5 of 2.04 TB/s
        rank.operator("aten::gelu", GELU, kernel, plan.cost, dims=[[elements]])
    else:
        size = max(int((kernel * 1.2e5 / 2) ** (1 / 3)) // 8 * 8, 8)  # 120 of 312 TFLOP/s
        types = ["c10::BFloat16", "c10::BFloat16"]
        rank.operator("aten::mm", GEMM, kernel, plan.cost, dims=[[size, size], [size, size]], types=types)


def made(job: Job, folder: Path, layout: str | None = None) -> tuple[list[Path], list[Rank]]:
    """The traces of JOB in FOLDER, one for each rank, on clocks that differ, and the ranks themselves."""
    chance = Random(f"{job.name} {job.seed}")  # noqa: S311
    ranks = [
        Rank(number, job.world, Random(f"{job.name} {job.seed} {number}"), 4_000 * MS, shapes=True)  # noqa: S311
        for number in range(job.world)
    ]
    performed([trained(rank, job) for rank in ranks])
    # without a head nobody knows the device, on which it depends what its memory can do
    layout = layout or chance.choice([each for each in LAYOUTS if each != "list" or not job.plan.memory])
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for rank in ranks:
        ending = ".json.gz" if layout == "gzip" else ".json"
        skew = chance.randrange(50 * MS) if job.world > 2 else 0
        host = f"node{rank.number // 4}" if job.world > 4 else f"node{rank.number}"
        paths.append(written(rank, layout, folder / f"rank{rank.number}{ending}", skew, host))
    return paths, ranks


def jobs() -> Iterator[Job]:
    """Each plan with several seeds and numbers of ranks."""
    for name, (plan, worlds, faults, verdicts) in _plans().items():
        for seed, world in enumerate(worlds):
            late = plan.late if plan.late < world else world - 1
            of_job = name in _OF_SOME and world >= MANY
            found, bound = _OF_SOME[name] if of_job else (faults, verdicts)
            yield Job(name, replace(plan, late=late), world, seed, frozenset(found.split()), frozenset(bound.split()))


MANY = 8
"""Ranks from which on what one of them shows is said of its lateness, and no longer of the job."""
_OF_SOME = {
    "straggler by data": ("straggler", ""),
    "straggler by its host": ("straggler", ""),
    "straggler by its device": ("straggler", ""),
    "communication and a straggler": ("communication-bound straggler", "communication-bound"),
}


def _plans() -> dict[str, tuple[Plan, tuple[int, ...], str, str]]:
    busy, slow = "compute-bound", Plan(transfer=30 * MS)
    return {
        "healthy": (Plan(), (1, 1, 2, 4, 8, 8), "", busy),
        "healthy, one read a step": (Plan(items=1), (1, 2, 4), "", busy),
        "healthy, data hidden": (Plan(data=8 * MS), (1, 2, 4), "", busy),
        "healthy, small copies hidden": (Plan(copy=2 * MS), (1, 4), "", busy),
        "input": (Plan(data=90 * MS), (1, 1, 2, 4, 8), "input-bound", "input-bound"),
        "input of a small model": (Plan(data=60 * MS, kernel=100 * US), (1, 2, 4), "input-bound", "input-bound"),
        "launch": (Plan(kernel=4 * US, transfer=20 * US), (1, 1, 2, 4, 8), "launch-bound", "launch-bound"),
        "sync": (Plan(items=24, kernel=30 * US, cost=90 * US), (1, 1, 1), "sync-bound", ""),
        "sync of longer kernels": (
            Plan(items=24, kernel=50 * US, cost=120 * US, transfer=50 * US),
            (1, 2, 4),
            "sync-bound",
            "",
        ),
        "transfer": (Plan(copy=40 * MS, nbytes=200 * 2**20, pinned=False), (1, 1, 2, 4), "transfer-bound", ""),
        "communication": (slow, (2, 2, 4, 8, 8), "communication-bound", "communication-bound"),
        "buckets": (
            Plan(bucket=2**16, transfer=6 * MS, buckets=12),
            (2, 4, 8),
            "communication-bound bucket-size",
            "communication-bound",
        ),
        "straggler by data": (
            Plan(late=1, more=80 * MS, phase="input"),
            (2, 4, 8),
            "straggler input-bound",
            "input-bound",
        ),
        "straggler by its host": (Plan(late=2, more=80 * MS, phase="host"), (2, 4, 8), "straggler", "loop-bound"),
        "straggler by its device": (
            Plan(late=3, more=30 * MS, phase="compute"),
            (2, 4, 8),
            "straggler",
            "compute-bound",
        ),
        "python": (Plan(python=80 * MS), (1, 2, 4), "", "loop-bound"),
        "memory": (Plan(memory=True), (1, 2, 4), "", "bandwidth-bound"),
        "input and transfer": (
            Plan(data=80 * MS, copy=40 * MS, nbytes=200 * 2**20, pinned=False),
            (1, 2, 4),
            "input-bound transfer-bound",
            "input-bound",
        ),
        "communication and a straggler": (
            replace(slow, late=1, more=300 * MS, phase="input"),
            (2, 4, 8),
            "communication-bound straggler input-bound",
            "communication-bound input-bound",
        ),
    }  # fmt: skip
