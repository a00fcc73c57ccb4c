"""Looks at the bits of the same tensors on several ranks, joined: which of them should be equal, and which are not."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from torchtriage.examine.run.job.events import Look, Replicas
from torchtriage.examine.run.record import RankRecord, RunRecord

LOCAL = ("localsgd", "noop", "no_op")  # in the names of hooks that let the replicas go their own ways for a while
EXCHANGED = 1.5  # times all weights, that collectives carried beside the gradients: they come back together
ALWAYS = 0.9  # of the looks
LOOKS = 3  # after updates, from which on something is said of a job that averages by hand


@dataclass(frozen=True)
class JointLook:
    """One look, on all of the ranks that took it. turn: updates of the optimizer before it, 0 before the first."""

    turn: int
    by_rank: dict[int, Look]

    @property
    def step(self) -> int:
        return min(look.step for look in self.by_rank.values())

    def differs(self, index: int) -> bool:
        """Whether the ranks hold different values; what has ceased to be a number on all of them is not compared."""
        marks = {look.marks[index] for look in self.by_rank.values()}
        return len(marks) > 1 and not all(math.isnan(look.squares[index]) for look in self.by_rank.values())

    def gap(self, index: int) -> float:
        """By how much the norms differ, of the largest: no more than the values themselves do."""
        norms = [math.sqrt(max(look.squares[index], 0.0)) for look in self.by_rank.values()]
        finite = [norm for norm in norms if math.isfinite(norm)]
        return (max(finite) - min(finite)) / max(finite) if len(finite) == len(norms) and max(finite) > 0 else math.nan

    def odd(self, index: int) -> int | None:
        """The one rank that has other values than all others, which agree; None where there is no such rank."""
        marks = Counter(look.marks[index] for look in self.by_rank.values())
        if len(self.by_rank) < 3 or len(marks) != 2 or min(marks.values()) > 1:
            return None
        rare = min(marks, key=lambda mark: marks[mark])
        return next(rank for rank, look in self.by_rank.items() if look.marks[index] == rare)


@dataclass(frozen=True)
class Joint:
    """The tensors of one optimizer on RANKS. heads: what each rank says of them."""

    ranks: tuple[RankRecord, ...]
    heads: dict[int, Replicas]
    looks: tuple[JointLook, ...]

    @property
    def head(self) -> Replicas:
        return next(iter(self.heads.values()))

    @property
    def wrapped(self) -> bool:
        """A DistributedDataParallel averages over these ranks in every step."""
        hooks = [name.lower() for name in self.head.hooks]
        return self.head.over is not None and not any(word in name for word in LOCAL for name in hooks)

    @cached_property
    def later(self) -> tuple[JointLook, ...]:
        return tuple(look for look in self.looks if look.turn)

    @property
    def returning(self) -> bool:
        """Replicas differ at times by design: weights are exchanged now and then, or a rank with fewer batches waits
        for the others and gets their weights.
        """
        if any(each.joins for look in self.looks for each in look.by_rank.values()):
            return True
        whole = sum(self.head.sizes)
        return any(each.weights >= EXCHANGED * whole for each in self.looks[-1].by_rank.values())

    @cached_property
    def averaged(self) -> frozenset[int]:
        """The tensors whose gradients the job's own collectives carry, in nearly all looks and steps."""
        last = self.looks[-1]
        every = all(each.averaged >= ALWAYS * last.turn for each in last.by_rank.values())
        if len(self.later) < LOOKS or not every:
            return frozenset()
        seen = Counter(index for look in self.later for each in look.by_rank.values() for index in each.carried)
        enough = ALWAYS * len(self.later) * len(self.heads)
        return frozenset(index for index, number in seen.items() if number >= enough)

    @cached_property
    def expected(self) -> frozenset[int]:
        """The tensors that must be equal on these ranks after every update."""
        if self.returning:
            return frozenset()
        if self.wrapped:
            return frozenset(index for index, kind in enumerate(self.head.kinds) if kind in "pf")
        sizes = self.head.sizes
        whole = sum(size for size, kind in zip(sizes, self.head.kinds, strict=True) if kind == "p")
        return self.averaged if 2 * sum(sizes[index] for index in self.averaged) >= whole else frozenset()

    def parted(self, index: int) -> int | None:
        """The number of the look from which on a tensor differs until the last; None for one that came back, or did
        not differ.
        """
        differing = [look.differs(index) for look in self.looks]
        if not differing or not differing[-1]:
            return None
        since = len(differing) - 1
        while since and differing[since - 1]:
            since -= 1
        return None if any(d and look.turn for d, look in zip(differing[:since], self.looks, strict=False)) else since


def joined(record: RunRecord) -> Iterator[Joint]:
    """What two ranks or more have of the same optimizer over the same tensors."""
    found: dict[tuple[int, int], dict[int, tuple[RankRecord, Replicas]]] = defaultdict(dict)
    for rank in record.ranks:
        seen: Counter[int] = Counter()
        for head in rank.all(Replicas):
            found[(head.key, seen[head.key])][rank.rank] = (rank, head)
            seen[head.key] += 1
    for known in found.values():
        for numbers in _together(known):
            joint = _joint([known[number] for number in numbers])
            if joint is not None:
                yield joint


def divergence(record: RunRecord) -> dict[str, Any] | None:
    """At each look how many of the tensors that should be equal differ, and the first; None without such tensors."""
    joints = [joint for joint in joined(record) if joint.expected]
    rows: dict[int, list[int]] = {}
    first: dict[str, Any] | None = None
    for joint in joints:
        for look in joint.later:
            differing = sorted(index for index in joint.expected if look.differs(index))
            row = rows.setdefault(look.step, [0, 0])
            row[0] += len(differing)
            row[1] += len(joint.expected)
            if differing and (first is None or look.step < first["step"]):
                names = joint.head.names
                first = {"step": look.step, "tensor": names[differing[0]], "ranks": sorted(look.by_rank)}
    looks = [{"step": step, "differing": row[0], "of": row[1]} for step, row in sorted(rows.items())]
    return {"looks": looks, "first": first} if looks else None


def _together(known: dict[int, tuple[RankRecord, Replicas]]) -> Iterator[list[int]]:
    """The ranks that average together, as the wrapper or the collectives say; all of them where nothing says so."""
    groups: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for number, (rank, head) in known.items():
        told = tuple(head.over) if head.over is not None else _exchanging(rank, head)
        groups[told or tuple(known)].append(number)
    return (sorted(numbers) for numbers in groups.values() if len(numbers) > 1)


def _exchanging(rank: RankRecord, head: Replicas) -> tuple[int, ...]:
    """The ranks of the group in which this one exchanges gradients most often."""
    seen = Counter(tuple(group) for look in _looks(rank, head) for group in look.groups)
    return max(seen, key=lambda group: (seen[group], len(group)), default=())


def _looks(rank: RankRecord, head: Replicas) -> list[Look]:
    return [look for look in rank.all(Look) if (look.key, look.optimizer) == (head.key, head.optimizer)]


def _joint(parts: list[tuple[RankRecord, Replicas]]) -> Joint | None:
    by_turn: dict[int, dict[int, Look]] = defaultdict(dict)
    for rank, head in parts:
        for look in _looks(rank, head):
            by_turn[look.turn][rank.rank] = look
    looks = tuple(JointLook(turn, seen) for turn, seen in sorted(by_turn.items()) if len(seen) == len(parts))
    heads = {rank.rank: head for rank, head in parts}
    return Joint(tuple(rank for rank, _ in parts), heads, looks) if looks else None
