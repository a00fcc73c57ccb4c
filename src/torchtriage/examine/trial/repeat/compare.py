"""Where two legs part: the first step whose training differs, and in it the first mark that does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from torchtriage.examine.trial.repeat.record import Item, Prints, Step, Told, flat

RESULTS = ("loss", "grad", "reduced", "param", "buffer")  # what a training is; all else may differ and matter to nobody
PHASES = {
    "init": "setup", "batch": "data", "in": "data", "mid": "forward", "out": "forward", "aside": "forward",
    "loss": "forward", "grad": "backward", "reduced": "backward", "hyper": "update", "held": "update",
    "param": "update", "buffer": "update",
}  # fmt: skip

_ORDER = ("setup", "data", "forward", "backward", "update")  # what one rank gets shows in the gradients of all


@dataclass(frozen=True)
class Difference:
    """The first one of a rank. step: from 1. phase: "setup", "data", "forward", "backward" or "update".

    item: what differs first, and in words; path: the legs did not even do the same things in this step. differing: how
    many of the marks of its kind in the step differ, of how many. states: generators that differed when it began.
    turns: of optimizers that make up the step.
    """

    rank: int
    step: int
    phase: str
    item: Item
    module: str | None
    path: bool
    differing: tuple[int, int]
    states: tuple[str, ...]
    turns: tuple[int, int]


def first(one: Told, other: Told) -> Difference | None:
    """The earliest difference of all ranks; None where what both have written is equal."""
    found = [
        difference
        for rank in sorted(one.by_rank.keys() & other.by_rank.keys())
        if (difference := between(one.by_rank[rank], other.by_rank[rank])) is not None
    ]
    return min(found, key=lambda each: (each.step, _ORDER.index(each.phase), each.rank), default=None)


def between(one: Prints, other: Prints) -> Difference | None:
    """The first difference of one rank."""
    harmless: set[tuple[str, str]] = set()
    for mine, theirs in zip(one.steps, other.steps, strict=False):
        if not _trains_otherwise(mine, theirs):
            harmless |= {(item.kind, item.name) for item, _ in _parting(mine, theirs)}
            continue
        parted = [(item, path) for item, path in _parting(mine, theirs) if (item.kind, item.name) not in harmless]
        if not parted:  # what differs has done so before, and to no effect
            parted = list(_parting(mine, theirs))
        return _told(one, mine, theirs, *parted[0])
    return None


def compared(one: Told, other: Told) -> int:
    """Steps of the rank of which the fewest were compared."""
    ranks = one.by_rank.keys() & other.by_rank.keys()
    return min((min(one.by_rank[rank].count, other.by_rank[rank].count) for rank in ranks), default=0)


def _trains_otherwise(mine: Step, theirs: Step) -> bool:
    if not (mine.whole and theirs.whole):
        return _half(mine, theirs)
    return flat(mine, *RESULTS) != flat(theirs, *RESULTS)


def _half(mine: Step, theirs: Step) -> bool:
    """Of a step that one of them did not end, what both have noted."""
    ours, others = flat(mine, *RESULTS), flat(theirs, *RESULTS)
    return any(a != b for key in ours.keys() & others.keys() for a, b in zip(ours[key], others[key], strict=False))


def _parting(mine: Step, theirs: Step) -> Iterator[tuple[Item, bool]]:
    """The marks that differ, in order; the last one where the legs go different ways.

    Gradients that several threads bring come in any order.
    """
    ours, others = list(mine.items), list(theirs.items)
    grads = flat(theirs, "grad")
    for a, b in zip(ours, others, strict=False):
        if (a.kind, a.name) == (b.kind, b.name):
            if a.mark != b.mark:
                yield a, False
        elif a.kind == b.kind == "grad" and (a.kind, a.name) in grads:
            if a.mark not in grads[a.kind, a.name]:
                yield a, False
        else:
            yield a, True
            return
    if len(ours) != len(others) and mine.whole and theirs.whole:
        longer = ours if len(ours) > len(others) else others
        yield longer[min(len(ours), len(others))], True


def _told(one: Prints, mine: Step, theirs: Step, item: Item, path: bool) -> Difference:
    alike = [each for each in mine.items if each.kind == item.kind]
    differing = [each for each, apart in _parting(mine, theirs) if not apart and each.kind == item.kind]
    states = tuple(name for name, state in mine.states.items() if state != theirs.states.get(name, state))
    step, phase = mine.number, PHASES[item.kind]
    if item.kind == "held" and step > 1:
        step -= 1
    module = _module(item)
    if item.kind == "init":
        module = _shared([each.name for each in differing], len(alike), [each.name for each in alike])
    found = Difference(one.rank, step, phase, item, module, path, (len(differing), len(alike)), states, mine.turns)
    return replace(found, module=None) if phase == "data" else found


def _module(item: Item) -> str | None:
    """The module that a mark belongs to; of a root's own parameter it has no name."""
    name = item.name.partition("#")[0]
    if item.kind in {"out", "aside", "mid", "in"}:
        return name
    if item.kind in {"loss", "batch", "hyper"} or name.startswith("("):
        return None
    return name.rpartition(".")[0] or None


def _shared(differing: list[str], of: int, names: list[str]) -> str | None:
    """The module that holds all parameters that differ, where others were made alike; None where it is the model."""
    owners = [name.split(".")[:-1] for name in differing]
    common = ".".join(part for part, *others in zip(*owners, strict=False) if all(each == part for each in others))
    others = [name for name in names if name not in differing and name.endswith("weight")]
    return common if common and others and len(differing) < of else None
