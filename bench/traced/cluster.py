"""Jobs on many machines of eight ranks each, with one planted cause: small traces, and what is to be said of them all.

Gradients are summed among the ranks of a machine and then, rank by rank of a machine, among all machines, as sharding
within machines does it: a slow link inside one machine or in one such rail can be told from others of its kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from traced.jobs import ADAM, GEMM
from traced.layout import written
from traced.simulated import MS, US, Group, Meeting, Rank

EACH = 8
"""Ranks of a machine."""
STEPS, LAYERS = 5, 1
DATA, KERNEL, TRANSFER, BUCKET = 50 * US, 5 * MS, 800 * US, 25 * 2**20


@dataclass(frozen=True)
class Cluster:
    """late: the ranks that lose MORE nanoseconds of each step, in PHASE. slow: the group whose transfers do;
    ring: whether all ranks are one group.

    faults, verdicts: all that are to be found; says: what the finding's one row of evidence says, place: of which rank.
    """

    name: str
    world: int
    faults: frozenset[str] = frozenset()
    verdicts: frozenset[str] = frozenset({"compute-bound"})
    says: tuple[str, ...] = ()
    place: int | None = None
    late: frozenset[int] = frozenset()
    more: int = 60 * MS
    phase: str = "input"
    slow: str = ""
    ring: bool = False


def clusters(world: int) -> Iterator[Cluster]:
    """Every cause, for a job of WORLD ranks."""
    host = world // EACH * 2 // 3
    ranks = frozenset(range(host * EACH, host * EACH + EACH))
    one = host * EACH + 5
    late, link, data = frozenset({"straggler"}), frozenset({"communication-bound"}), frozenset({"input-bound"})
    alone, none = (f"rank {one} comes", f"others on host node{host}"), frozenset[str]()
    slow = "is slow", "though all had come"
    yield Cluster("healthy", world)
    yield Cluster("slow rank, data", world, late, none, (*alone, "its data"), one, frozenset({one}))
    yield Cluster("slow rank, device", world, late, none, (*alone, "computing"), one, frozenset({one}), phase="compute")
    said = f"all 8 ranks of host node{host} come", "code of the host"
    yield Cluster("slow host", world, late, none, said, None, ranks, phase="host")
    in_machine, in_rail = (f"all of host node{host},", *slow), ("ranks 3, 11, 19, 27, ", *slow)
    yield Cluster("bad link in a machine", world, link, link, in_machine, slow=f"machine{host}", more=9 * MS)
    yield Cluster("bad link in a rail", world, link, link, in_rail, slow="rail3", more=9 * MS)
    alone = (f"rank {one} comes", f"others on host node{host} are not")
    yield Cluster("bad link in one ring of all", world, link, link, slow="all", more=9 * MS, ring=True)
    yield Cluster("slow rank in one ring of all", world, late, none, alone, one, frozenset({one}), ring=True)
    of_all = f"{world:,} ranks", "next batch", "most on"
    yield Cluster("phase", world, data, data, of_all, None, frozenset(range(world)))


def made(job: Cluster, folder: Path, *, hosts: bool = True, folders: bool = False) -> list[Path]:
    """The traces of JOB in FOLDER. hosts: whether they name theirs; folders: whether each machine has one of its own.

    The clocks of machines differ, those of a machine's ranks do not.
    """
    chance = Random(f"{job.name} {job.world}")  # noqa: S311
    ranks = [Rank(number, job.world, Random(f"{job.name} {number}"), 4_000 * MS) for number in range(job.world)]  # noqa: S311
    of = _groups(job)
    _met([_trained(rank, job, of[rank.number]) for rank in ranks])
    skews = [chance.randrange(50 * MS) for _ in range(0, job.world, EACH)]
    paths = []
    for rank in ranks:
        host = rank.number // EACH
        home = folder / f"node{host}" if folders else folder
        home.mkdir(parents=True, exist_ok=True)
        path = home / f"rank{rank.number}.json"
        paths.append(written(rank, "dense", path, skews[host], f"node{host}" if hosts else ""))
    return paths


def _groups(job: Cluster) -> list[dict[str, Group]]:
    """For each rank its collectives of a step, and among whom they are."""
    if job.ring:
        return [{"AllReduce": Group("all", tuple(range(job.world)))}] * job.world
    machines = [Group(f"machine{host // EACH}", tuple(range(host, host + EACH))) for host in range(0, job.world, EACH)]
    rails = [Group(f"rail{place}", tuple(range(place, job.world, EACH))) for place in range(EACH)]
    return [{"ReduceScatter": machines[rank // EACH], "AllReduce": rails[rank % EACH]} for rank in range(job.world)]


def _trained(rank: Rank, job: Cluster, groups: dict[str, Group]) -> Iterator[tuple[Group, Meeting]]:
    """All steps of one rank, up to each of its collectives."""
    extra = job.more if rank.number in job.late else 0
    for number in range(STEPS):
        begin = rank.now
        rank.data(rank.jittered(DATA) + (extra if job.phase == "input" else 0))
        rank.work(20 * US + (extra if job.phase == "host" else 0))
        rank.copy(2**20, rank.jittered(100 * US), pinned=True)
        for layer in range(2 * LAYERS):
            kernel = (1 + layer // LAYERS) * KERNEL + (extra // (2 * LAYERS) if job.phase == "compute" else 0)
            rank.operator("aten::mm", GEMM, kernel, 25 * US)
        for what, group in groups.items():
            transfer = TRANSFER + (job.more if group.name == job.slow else 0)
            yield group, rank.collective(what, BUCKET, rank.jittered(transfer), group)
        rank.join()
        rank.operator("aten::_fused_adamw_", ADAM, KERNEL // 10, 25 * US)
        rank.step(number + 3, begin)


def _met(trainings: Sequence[Iterator[tuple[Group, Meeting]]]) -> None:
    """Runs all ranks to their ends: those of a group go on together, once the last of them has come."""
    while True:
        come: dict[Group, list[tuple[Meeting, tuple[int, int]]]] = {}
        for each in trainings:
            for group, meeting in [found] if (found := next(each, None)) else []:
                come.setdefault(group, []).append((meeting, next(meeting)))
        if not come:
            return
        for waiting in come.values():
            end = max(start for _, (start, _) in waiting) + max(transfer for _, (_, transfer) in waiting)
            for meeting, _ in waiting:
                _ended(meeting, end)


def _ended(meeting: Meeting, end: int) -> None:
    try:
        meeting.send(end)
    except StopIteration:
        return
    raise AssertionError("a collective meets once")
