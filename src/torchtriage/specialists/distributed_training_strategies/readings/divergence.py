"""What the looks of several ranks say of their replicas: when they parted, where, and what may have parted them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.job.events import Collectives
from torchtriage.examine.run.ranks.looks import Joint, JointLook, joined
from torchtriage.examine.run.record import RankRecord, RunRecord
from torchtriage.specialists.distributed_training_strategies.probes.events import Divided, Inputs
from torchtriage.specialists.distributed_training_strategies.readings import handles, wrappers
from torchtriage.specialists.distributed_training_strategies.readings.causes import Parting, causes
from torchtriage.specialists.distributed_training_strategies.readings.replicas import wrapper_bypassed

LASTING = 3  # looks in a row that differ, of what nobody averages by itself
APART = 8  # updates, after which ranks that exchanged nothing train apart
LITTLE = 0.25  # of a model's values: what collectives carry beside a training, figures for the log above all
SCALARS, BYTES = 64, 4  # bytes in a collective of figures at most; in a value
SMALL = 0.5  # of all values: what an average by hand may have forgotten


@dataclass(frozen=True)
class Drift:
    """Tensors of a joint that differ from the look of that number on. words: what is the matter with them."""

    joint: Joint
    indices: tuple[int, ...]
    since: int
    words: str

    @property
    def look(self) -> JointLook:
        return self.joint.looks[self.since]


@detector("run/ranks-diverged")
def ranks_diverged(record: RunRecord) -> Iterator[Sighting]:
    """Ranks that train one model hold different weights."""
    if any(wrappers.unreduced(rank) for rank in record.ranks):
        return  # a job that ended since an average never came: unused-parameters says so
    if any(handles.unwaited(rank) for rank in record.ranks):
        return  # averages that may not be there yet: handle-not-waited says so
    past = any(True for rank in record.ranks for _ in wrapper_bypassed.look(rank))
    joints = list(joined(record))
    for joint in joints:
        drift = next(_drifts(joint, joints), None)
        if drift is not None and not (past and joint.wrapped):  # wrapper-bypassed tells why, and where
            yield from _told(drift)


def _drifts(joint: Joint, joints: Sequence[Joint]) -> Iterator[Drift]:
    """The gravest first. JOINTS: all of the run."""
    if joint.returning:
        return
    yield from _expected(joint)
    if joint.expected:
        yield from _forgotten(joint)
    else:
        yield from _once_equal(joint)
        yield from _beside(joint, joints)
        yield from _unsharded(joint)
        yield from _apart(joint)


def _expected(joint: Joint) -> Iterator[Drift]:
    """What a wrapper, or the job's own collectives, average in every step."""
    parted = {index: since for index in joint.expected if (since := joint.parted(index)) is not None}
    if not parted:
        return
    since = min(parted.values())
    how = "averaged by DistributedDataParallel" if joint.wrapped else "whose gradients are averaged in every step"
    if joint.head.unknown:
        how = "of a DistributedDataParallel that does not know them: they were replaced after it was made"
    elif since == 0 and not joint.looks[0].turn:
        how += ", and not equal when they begin"
    yield _drift(joint, [index for index, at in parted.items() if at == since], since, how)


def _forgotten(joint: Joint) -> Iterator[Drift]:
    """What began equal beside the tensors that are averaged, and is not."""
    kinds, sizes = joint.head.kinds, joint.head.sizes
    rest = {
        index: since
        for index in range(len(kinds))
        if index not in joint.expected
        and (since := joint.parted(index)) is not None
        and (since > 0 or kinds[index] == "b")
        and len(joint.looks) - since >= LASTING
    }
    for kind in "opb":
        indices = [index for index in rest if kinds[index] == kind]
        if not indices or (kind == "p" and sum(sizes[index] for index in indices) > SMALL * sum(sizes)):
            continue
        since = min(rest[index] for index in indices)
        yield _drift(joint, [index for index in indices if rest[index] == since], since, _why_forgotten(joint, kind))


def _why_forgotten(joint: Joint, kind: str) -> str:
    if kind == "b":
        told = (
            "DistributedDataParallel was told not to send buffers round" if joint.wrapped else "nobody sends it round"
        )
        return f"a buffer that is saved, and {told}"
    if kind == "o":
        return "trained by the same optimizer, and in no DistributedDataParallel"
    return "whose gradients no collective carries, beside others that are averaged in every step"


def _once_equal(joint: Joint) -> Iterator[Drift]:
    """Replicas in a job whose ranks hold parts of their own beside them: equal while they moved, and then no longer."""
    names, later = joint.head.names, joint.later
    calls = all(look.calls >= len(later) for look in joint.looks[-1].by_rank.values())
    own = any(later and later[0].differs(index) for index in range(len(names))) or joint.head.left
    if not own or not (calls or joint.head.left):
        return
    parted: dict[int, int] = {}
    for index in range(len(names)):
        since = joint.parted(index)
        if since is None or len(joint.looks) - since < 2 or joint.head.kinds[index] != "p":
            continue
        marks = {next(iter(look.by_rank.values())).marks[index] for look in joint.looks[:since] if look.turn}
        if len(marks) > 1:
            parted[index] = since
    if parted:
        since = min(parted.values())
        how = "equal on these ranks while they learned, beside parts that each rank has for itself"
        yield _drift(joint, [index for index, at in parted.items() if at == since], since, how)


def _beside(joint: Joint, joints: Sequence[Joint]) -> Iterator[Drift]:
    """A small part with an optimizer of its own, equal when it began, that learns from the backward passes of a model
    which DistributedDataParallel averages: its own gradients nobody does.
    """
    model = next((each for each in joints if _learns_with(joint, each)), None)
    begin, last = joint.looks[0], joint.looks[-1]
    carried = any(own.carried for look in joint.looks for own in look.by_rank.values())
    indices = [index for index, kind in enumerate(joint.head.kinds) if kind == "p"]
    if model is None or carried or begin.turn or last.turn < APART or any(begin.differs(index) for index in indices):
        return
    parted = [index for index in indices if joint.parted(index) == 1]
    if len(joint.looks) - 1 >= LASTING and parted:
        how = f"trained by an optimizer of its own from the backward passes of {model.head.name}, and in no "
        yield _drift(joint, parted, 1, f"{how}DistributedDataParallel")


def _unsharded(joint: Joint) -> Iterator[Drift]:
    """Whole tensors beside those that FSDP shards, equal when they began, whose gradients nobody averages."""
    ranks, begin, last = tuple(sorted(joint.heads)), joint.looks[0], joint.looks[-1]
    sharded = all(any(list(ranks) in inputs.over for inputs in rank.all(Inputs)) for rank in joint.ranks)
    kinds = {op for rank in joint.ranks for look in rank.all(Collectives) for op, _, _ in look.kinds}
    carried = any(own.carried for look in joint.looks for own in look.by_rank.values())
    exchanged = any("all_to_all" in op or "alltoall" in op for op in kinds)  # experts of their own, on every rank
    if not sharded or not joint.head.left or carried or exchanged or begin.turn or last.turn < APART:
        return
    indices = [index for index, kind in enumerate(joint.head.kinds) if kind == "p"]
    if any(begin.differs(index) for index in indices):
        return
    parted = [index for index in indices if joint.parted(index) == 1]
    if len(joint.looks) - 1 >= LASTING and parted:
        how = f"whole on every rank beside {joint.head.left} tensors that FSDP shards, in no unit that it averages"
        yield _drift(joint, parted, 1, how)


def _learns_with(joint: Joint, model: Joint) -> bool:
    """Whether each backward pass was for an update of both, of which MODEL is wrapped, and by far larger."""
    last = joint.looks[-1]
    passes = max(own.backwards for own in last.by_rank.values())
    same = model.wrapped and set(model.heads) == set(joint.heads) and model.looks[-1].turn == last.turn
    return same and passes <= last.turn + 1 and sum(joint.head.sizes) <= SMALL * sum(model.head.sizes)


def _apart(joint: Joint) -> Iterator[Drift]:
    """The same model from the same weights over divided data, and no collective that could have carried a gradient."""
    last = joint.looks[-1]
    whole = sum(joint.head.sizes)
    silent = not any(own.most >= LITTLE * whole for own in last.by_rank.values())
    silent = silent and not any(_exchanged(rank, whole) for rank in joint.ranks)
    divided = all(
        any((loader.num_replicas or 0) >= len(joint.heads) for loader in rank.all(Divided)) for rank in joint.ranks
    )
    begin = joint.looks[0]
    if not silent or not divided or begin.turn or last.turn < APART or joint.head.left:
        return
    indices = [index for index, kind in enumerate(joint.head.kinds) if kind == "p"]
    if any(begin.differs(index) for index in indices):
        return
    parted = [index for index in indices if joint.parted(index) == 1]
    if len(joint.looks) - 1 >= LASTING and 2 * len(parted) >= len(indices):
        how = f"trained on shards of one data set for {last.turn} updates, and no collective has carried a gradient"
        yield _drift(joint, parted, 1, how)


def _exchanged(rank: RankRecord, whole: int) -> bool:
    """Whether collectives that are no averages, or sends and receives, have carried much of a model of that size."""
    looks = rank.all(Collectives)
    carried = sum(size * count for look in looks for _, size, count in look.kinds if size >= SCALARS)
    return carried >= BYTES * LITTLE * whole or any(look.pairs for look in looks)


def _drift(joint: Joint, indices: list[int], since: int, words: str) -> Drift:
    return Drift(joint, tuple(sorted(indices)), since, words)


def _told(drift: Drift) -> Iterator[Sighting]:
    joint, look = drift.joint, drift.look
    first, names = drift.indices[0], drift.joint.head.names
    found = list(causes(Parting(joint, drift.since, first)))
    odd = look.odd(first)
    for number, cause in enumerate(found):
        rank = cause.rank if cause.rank is not None else odd
        place = Place(path=cause.path or None, line=cause.line or None, rank=rank, step=look.step, module=names[first])
        fact = f"{_fact(drift)}; {cause.words}" if not number else cause.words
        yield Sighting(place, fact, float(len(drift.indices)), "tensors")


def _fact(drift: Drift) -> str:
    joint, look, first = drift.joint, drift.look, drift.indices[0]
    names, ranks = joint.head.names, sorted(joint.heads)
    number = sum(1 for index in range(len(names)) if look.differs(index))
    whom = " and ".join(map(str, ranks)) if len(ranks) < 3 else f"{ranks[0]} to {ranks[-1]}"
    when = _when(drift)
    gap, last = look.gap(first), joint.looks[-1]
    apart = f", norms {gap:.2g} of the larger apart" if gap > 0 else ""
    if last.turn > look.turn and last.gap(first) > gap:
        apart += f" ({last.gap(first):.2g} after update {last.turn})"
    return (
        f"{number} of {len(names)} tensors of {joint.head.name} differ between ranks {whom} {when}: first "
        f"{names[first]}{apart}, {drift.words}"
    )


def _when(drift: Drift) -> str:
    look = drift.look
    if not look.turn:
        return "before the first update"
    before = drift.joint.looks[drift.since - 1].turn if drift.since else None
    if before is None:
        return f"after update {look.turn}"
    if before == 0:
        return f"after update {look.turn}, not before the first"
    return f"after update {look.turn}, not yet after update {before}"
