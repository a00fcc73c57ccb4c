"""The components that a resumed job lacks, the root before what follows from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from torchtriage.examine.trial.resume.trial import Part, Resumed, Row
from torchtriage.specialists.checkpointing_and_reproducibility.resuming import counters, data
from torchtriage.specialists.checkpointing_and_reproducibility.resuming.averages import is_average
from torchtriage.specialists.checkpointing_and_reproducibility.resuming.words import Missing, of_part

# What a scheduler counts for its own warnings, and what it computes anew at its next step.
_PASSING = frozenset(
    {"_step_count", "_last_lr", "_initial_step", "_is_initial", "_get_lr_called_within_step", "verbose"}
)
# How an update is computed, or what it was once; not what it computes.
_MEANS = frozenset({"initial_lr", "foreach", "fused", "capturable", "differentiable", "decoupled_weight_decay"})


def missing(resumed: Resumed) -> list[Missing]:
    """What is lacking, most telling first; nothing where the resumed job is the uninterrupted one."""
    parts = _by_kind(resumed)
    found = [*_weights(resumed, parts), *_optimizers(parts), *_rest(resumed, parts)]
    found += counters.missing(resumed)
    if not _explains_data(found):
        found += data.missing(resumed, {each.slug for each in found})
    if not found and has_parted(resumed) and resumed.repeat.apart is None and _by_itself(resumed):
        found += counters.unexplained(resumed)
    return found


def has_parted(resumed: Resumed) -> bool:
    """Whether anything became of it: the job went on in another way, or another way long."""
    return bool(resumed.course.apart) or bool(resumed.course.missing)


def _by_itself(resumed: Resumed) -> bool:
    """Not by what another rank did: that comes with the gradients, after the first batch and its loss."""
    return resumed.alone or 0 in (resumed.course.apart.get("batch"), resumed.course.apart.get("loss"))


def _explains_data(found: list[Missing]) -> bool:
    """An epoch that is off leads to another order of a sampler that is told the epoch."""
    return any(each.slug == "epoch" for each in found)


def _by_kind(resumed: Resumed) -> dict[str, list[Part]]:
    found: dict[str, list[Part]] = {}
    for part in resumed.parts:
        found.setdefault(part.kind, []).append(part)
    return found


def _weights(resumed: Resumed, parts: dict[str, list[Part]]) -> Iterator[Missing]:
    whole, through = False, False
    for part in parts.get("model", ()):
        rounded = {row.rounded for row in part.rows}
        if len(rounded) == 1 and (precision := rounded.pop()):
            through = True
            yield of_part("weights-rounded", part, more=f": they went through {precision}")
            continue
        whole = True
        yield of_part("model", part, more=_of_another_step(resumed))
    for part in parts.get("buffers", ()) if not whole else ():
        if not through or not all(row.rounded for row in part.rows):
            yield of_part("buffers", part)
    for part in (*parts.get("module", ()), *_containers(parts.get("tensor", []))):
        if is_average(part):
            yield of_part("ema", part)
        elif part.kind == "module" and not whole and has_parted(resumed):
            yield of_part("model", part)


def _containers(parts: list[Part]) -> list[Part]:
    """Tensors of one dictionary or list as one part: ema['0.weight'] and ema['0.bias'] are ema."""
    found: dict[str, list[Part]] = {}
    for part in parts:
        found.setdefault(part.holder.partition("[")[0], []).append(part)
    return [
        Part(
            "tensor",
            holder,
            len(each),
            tuple(replace(row, key=one.holder) for one in each for row in one.rows),
            moves=True,
        )
        for holder, each in found.items()
    ]


def _of_another_step(resumed: Resumed) -> str:
    weights = resumed.after[0].told.get("weights")
    same = [each for each in resumed.stood if each.told.get("weights") == weights and each.number != resumed.unit]
    if not same or not same[0].number:
        return ""
    return f": these are the weights after step {same[0].turn}, where the rest goes on after step {resumed.turn}"


def _optimizers(parts: dict[str, list[Part]]) -> Iterator[Missing]:
    states, schedules = parts.get("optimizer", []), _schedules(parts)
    yield from (of_part("optimizer", part) for part in states)
    for part, rows in schedules:
        more = (
            ": its last step is not in the file"
            if any(row.key == "last_epoch" and _one_less(row) for row in rows)
            else ""
        )
        yield of_part("scheduler", part, rows, more)
    if not states and not schedules:
        for part in parts.get("groups", ()):
            rows = tuple(row for row in part.rows if _entry(row) not in _MEANS)
            if rows:
                yield of_part("optimizer", part, rows)


def _schedules(parts: dict[str, list[Part]]) -> list[tuple[Part, tuple[Row, ...]]]:
    found = [
        (part, tuple(row for row in part.rows if row.key.rpartition(".")[2] not in _PASSING))
        for part in parts.get("scheduler", ())
    ]
    return [(part, rows) for part, rows in found if rows]


def _one_less(row: Row) -> bool:
    ints = isinstance(row.before, int) and isinstance(row.after, int)
    return ints and row.before - row.after == 1 and not row.anew


def _entry(row: Row) -> str:
    """The name of an entry of param_groups: param_groups[0]['lr'] is lr."""
    return row.key.rpartition("['")[2].removesuffix("']")


def _rest(resumed: Resumed, parts: dict[str, list[Part]]) -> Iterator[Missing]:
    yield from (of_part("scaler", part) for part in parts.get("scaler", ()))
    yield from (of_part("training-mode", part) for part in parts.get("flags", ()))
    if has_parted(resumed) and resumed.stood[resumed.unit].told.get("waiting"):
        yield from (of_part("gradients", part) for part in parts.get("gradients", ()) if any(r.gone for r in part.rows))
