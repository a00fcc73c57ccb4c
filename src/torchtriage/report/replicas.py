"""Whether the replicas of a model stayed the same on all ranks, look by look."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from torchtriage.core.plain import within
from torchtriage.report.hangs import ranges
from torchtriage.report.ranks import whole
from torchtriage.report.text import count, line


class Look(Struct, frozen=True):
    """After a step: how many tensors differ between ranks, of how many."""

    step: int
    differing: int
    of: int


class Replicas(Struct, frozen=True):
    """words: what the looks saw; looks: in the order of their steps, one at least."""

    words: str
    looks: tuple[Look, ...]

    @property
    def apart(self) -> bool:
        return any(look.differing for look in self.looks)


def replicas(measurements: dict[str, Any]) -> Replicas | None:
    """None where nobody has looked."""
    rows = within(measurements, "ranks", "divergence", "looks")
    listed = [_look(row) for row in rows] if isinstance(rows, list | tuple) else []
    looks = sorted((look for look in listed if look is not None), key=lambda look: look.step)
    if not looks:
        return None
    first = next((look for look in looks if look.differing), None)
    if first is None:
        return Replicas(_equal(looks), tuple(looks))
    told = within(measurements, "ranks", "divergence", "first")
    before = [look.step for look in looks if look.step < first.step]
    until = f" After step {before[-1]} all were the same." if before else ""
    some = f"{first.differing} of {count(first.of, 'tensor')} {'differs' if first.differing == 1 else 'differ'}"
    return Replicas(
        f"After step {first.step}, {some} between ranks{_between(told)}{_named(told)}.{until}", tuple(looks)
    )


def _look(row: Any) -> Look | None:
    step, differing, of = (whole(within(row, name)) for name in ("step", "differing", "of"))
    return None if step is None or differing is None or of is None else Look(step, differing, of)


def _equal(looks: list[Look]) -> str:
    of, last = looks[-1].of, looks[-1].step
    when = f"at {count(len(looks), 'look')}, the last one after step {last}"
    them = "was the same on the ranks that hold it" if of == 1 else "were the same on the ranks that hold them"
    return f"{count(of, 'tensor')} of the model {them} {when}."


def _between(first: Any) -> str:
    ranks = within(first, "ranks")
    told = [each for each in ranks if whole(each) is not None] if isinstance(ranks, list | tuple) else []
    return f" {ranges(told)}" if len(set(told)) > 1 else f", rank {told[0]} from the others" if told else ""


def _named(first: Any) -> str:
    tensor = within(first, "tensor")
    return f": {line(tensor)} is the first" if isinstance(tensor, str) and tensor else ""
