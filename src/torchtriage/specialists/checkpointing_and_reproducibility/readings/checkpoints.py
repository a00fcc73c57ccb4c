"""What a checkpoint shows of itself: damage, what it would run, what a resume would lack."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchtriage.catalog.component import Component
from torchtriage.core.evidence import Place
from torchtriage.examine.artefact.checkpoint import Checkpoint, Checkpoints
from torchtriage.examine.artefact.checkpoint.differences import differences, said
from torchtriage.examine.artefact.checkpoint.looked import shown
from torchtriage.examine.detector import CannotSee, Sighting, detector

_SHOWN = 20
_VERIFY = "`torchtriage read --verify` reads all numbers: as long as the disk needs to give them."


@detector("checkpoint/checkpoint-corrupt")
def checkpoint_corrupt(each: Checkpoint) -> Iterator[Sighting]:
    """A checkpoint is damaged or not whole."""
    more = len(each.troubles) - _SHOWN
    for number, trouble in enumerate(each.troubles[:_SHOWN], 1):
        rescue = f"; {trouble.rescue}" if trouble.rescue else ""
        rest = f" (and {more:,} more)" if number == _SHOWN and more > 0 else ""
        place = Place(path=trouble.path, offset=trouble.at, module=trouble.tensor[:200] or None)
        yield Sighting(place, f"{trouble.why}{rescue}{rest}")


@detector("checkpoint/checkpoint-not-finite")
def checkpoint_not_finite(each: Checkpoint) -> Iterator[Sighting]:
    """Tensors of the model or the optimizer hold NaN or Inf."""
    if each.verdict is None:
        raise CannotSee(
            "the numbers of the tensors were not read: NaN and flipped bits in them cannot be seen", _VERIFY
        )
    parts = [path for slug in ("model", "ema", "optimizer") for path in each.found.paths.get(slug, ())]
    for item in shown(each.verdict.not_finite):
        if any(path == "/" or item.tensor.startswith(f"{path}/") for path in parts):
            what = " and ".join(f"{count:,} {name}" for count, name in ((item.nan, "NaN"), (item.inf, "Inf")) if count)
            fact = f"{item.tensor}: {what} among {item.numbers:,} numbers of {item.dtype}"
            yield Sighting(Place(path=item.path, module=item.tensor[:200]), fact, float(item.nan + item.inf), "numbers")
    if not parts and (loose := shown(each.verdict.not_finite)):
        raise CannotSee(
            f"{each.path}: NaN or Inf in {loose[0].tensor[:200]}; whether these are weights cannot be told: "
            "the file has no part that is known",
            "See what wrote them: results may hold such numbers, weights may not.",
        )


@detector("checkpoint/pickle-trusted")
def pickle_trusted(each: Checkpoint) -> Iterator[Sighting]:
    """Loading the file with weights_only=False would run code that it names."""
    for name, at in each.foreign.code[:_SHOWN]:
        yield Sighting(
            Place(path=each.path, offset=at), f"it calls for {name[:200]}: any loader that unpickles it runs that"
        )


@detector("checkpoint/whole-object-saved")
def whole_object_saved(each: Checkpoint) -> Iterator[Sighting]:
    """The file holds objects that torch.load refuses by default."""
    objects = each.foreign.objects
    if each.layout != "file" or not objects or not each.tensors or each.form == "torchscript":
        return
    names = ", ".join(name[:120] for name, _ in objects[:5]) + (
        f" and {len(objects) - 5:,} more" if len(objects) > 5 else ""
    )
    _, offset = next(iter(objects))
    yield Sighting(Place(path=each.path, offset=offset), f"beside tensors and plain values it holds {names}")


@detector("checkpoint/checkpoint-incomplete")
def checkpoint_incomplete(each: Checkpoint) -> Iterator[Sighting]:
    """A checkpoint lacks a part of the state that its training had."""
    if each.troubles:  # what is not there may be what is damaged
        return
    for fact in (*_hollow(each), *_unscheduled(each), *_forgotten(each)):
        yield Sighting(Place(path=each.path), fact)


def _hollow(each: Checkpoint) -> Iterator[str]:
    done = [f"{value:,} {unit}" for slug, unit in (("step", "steps"), ("epoch", "epochs"))
            if (value := each.found.plain(slug)) is not None and value >= 1]  # fmt: skip
    if each.is_hollow and done:
        yield (
            f"the state of the optimizer ({each.found.paths['optimizer'][0]}) is empty after {done[0]}: it was taken "
            "from an optimizer that has not made a step, or from a rank that does not hold it"
        )


def _unscheduled(each: Checkpoint) -> Iterator[str]:
    """With the number of the epoch or step a scheduler can be wound on; with neither it cannot."""
    found = each.found
    if each.was_scheduled and not any(found.has(slug) for slug in ("scheduler", "epoch", "step")):
        yield (
            "the optimizer had a scheduler (initial_lr stands in its groups), and there is neither the scheduler's "
            "state nor an epoch or step to wind a new one on: the learning rate goes back to its beginning"
        )


def _forgotten(each: Checkpoint) -> Iterator[str]:
    """Files that those who write such folders always write."""
    always = _ALWAYS.get(each.layout, ())
    here = {slug for slug in always if each.found.has(slug)}
    if "optimizer" not in always or not here - {"model", "step"} or "DeepSpeed" in _writers(each):
        return
    for slug in always:
        if slug not in here:
            part = each.known[slug]
            yield f"{part.title} is not there, which {each.layout} writes beside the others: {part.without}"


_ALWAYS = {
    "Trainer": ("model", "optimizer", "scheduler", "rng-torch", "step"),
    "Accelerate": ("model", "optimizer", "rng-torch"),
}


def _writers(each: Checkpoint) -> Iterable[str]:
    """Those who keep the state of the optimizer in files of their own."""
    return {"DeepSpeed"} if any(name.startswith("global_step") for name in (*each.contents, *each.names)) else set()


@detector("checkpoint/keys-mismatched")
def keys_mismatched(subject: Checkpoints) -> Iterator[Sighting]:
    """Two checkpoints hold the same tensors under other keys."""
    if len(subject.each) != 2:
        return
    one, other = subject.each
    told = differences(one, other)
    if told.explains and not told.same and all(_is_wrapper(mine, theirs) for mine, theirs, _ in told.rules):
        yield Sighting(Place(path=other.path), f"{said(told)}: a model that loads {one.path} does not load this file")


def _is_wrapper(mine: str, theirs: str) -> bool:
    """Whether two keys differ by a wrapper's prefix alone; other names may be those of another model."""
    return not (mine and theirs) and {*(mine or theirs).split("."), ""} <= _WRAPPERS


_WRAPPERS = {"module", "_orig_mod", "_forward_module", "_fsdp_wrapped_module", ""}


# What kind of file it is


@detector("checkpoint/weights-only")
def weights_only(each: Checkpoint) -> Iterator[Sighting]:
    """The file holds weights and no state of a training."""
    if each.found.has("model") and not each.is_training and not each.troubles:
        lacking = _listed(part for part in each.lacking if part.needed == "always")
        yield Sighting(Place(path=each.path), f"{_size(each)}; a resume would lack {lacking}, and what else it uses")


@detector("checkpoint/resume-point")
def resume_point(each: Checkpoint) -> Iterator[Sighting]:
    """The file holds the state of a training."""
    if not each.is_training or each.troubles:
        return
    held = _listed(part for slug, part in each.known.items() if each.found.has(slug))
    lacking = f"; not there, for trainings that use it: {_listed(each.lacking)}" if each.lacking else ""
    steps = f"; the optimizer has made {each.steps:,.0f} step{'s' * (each.steps != 1)}" if each.steps else ""
    yield Sighting(Place(path=each.path), f"{_size(each)}: {held}{steps}{lacking}")


def _size(each: Checkpoint) -> str:
    unit, size = next((unit, size) for unit, size in _UNITS if each.size >= size)
    return f"{len(each.tensors):,} tensor{'s' * (len(each.tensors) != 1)}, {each.size / size:,.1f} {unit} ({each.form})"


_UNITS = (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10), ("bytes", 1))


def _listed(parts: Iterable[Component]) -> str:
    return ", ".join(part.title for part in parts)
