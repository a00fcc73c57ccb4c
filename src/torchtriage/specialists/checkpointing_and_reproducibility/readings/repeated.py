"""What two runs of one command show: where they part, and by what."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import CannotSee, Sighting, detector
from torchtriage.examine.run.series.quantiles import number
from torchtriage.examine.trial.repeat.compare import Difference
from torchtriage.examine.trial.repeat.pinpoint import Origin
from torchtriage.examine.trial.repeat.trial import Repeat

PHASES = {
    "setup": "before the first step: parameters begin with other numbers",
    "data": "in what the model gets",
    "forward": "in the forward pass",
    "backward": "in the backward pass",
    "update": "in the update",
}
HELD = {
    "seeds": "every generator seeded, those that nobody seeds too",
    "entropy": "clocks, os.urandom, uuid and process numbers giving the same answers",
    "hash": "PYTHONHASHSEED=0: the order of a set of strings, or hash(), reaches the training",
    "listing": "the names of each folder in alphabetical order",
    "addresses": "the addresses of objects held still: id() or the order of a set of objects reaches the training",
    "workers": "the batches made in the main process: what the workers draw differs",
    "threads": "one thread: sums of several threads come in another order",
    "deterministic": "torch.use_deterministic_algorithms(True): a kernel adds in any order",
    "together": "all of these at once: seeds, clocks and entropy, hashes, listings, addresses, threads, kernels",
}
WAY = "Run `torchtriage repro` with the command that trains, and with fewer steps where it takes long."


@detector("trial/run-not-reproducible")
def run_not_reproducible(repeat: Repeat) -> Iterator[Sighting]:
    """Two runs of the same command do not train alike."""
    if repeat.raced:
        raise CannotSee("several threads train in one process: which one was watched is up to chance", "Train in one.")
    if repeat.steps == 0 and repeat.place is None:
        raise CannotSee(_without_steps(repeat), WAY)
    place = repeat.place
    if repeat.lengths is not None:
        shorter, longer = sorted(repeat.lengths)
        fact = (
            f"the runs are equal as far as both go; then one ends after {shorter:,} updates, the other after {longer:,}"
        )
        yield Sighting(Place(step=shorter + 1), fact, float(longer - shorter), "steps")
    if place is None:
        return
    origin = repeat.origin
    spot = Place(
        path=origin.path or None if origin else None, line=origin.line or None if origin else None,
        rank=place.rank, step=place.step, module=place.module,
    )  # fmt: skip
    fact = f"the runs part at step {place.step}, {PHASES[place.phase]}: {_what(place, origin)}; {_because(repeat)}"
    yield Sighting(spot, fact, float(place.step), "step")


@detector("trial/seeds-incomplete")
def seeds_incomplete(repeat: Repeat) -> Iterator[Sighting]:
    """With every generator seeded the runs are equal; as the job seeds them they are not."""
    held, place = repeat.explained, repeat.place
    if (repeat.steps == 0 and place is None) or repeat.raced:
        raise CannotSee("nothing was compared", WAY)
    if held is None or place is None or held.what != "seeds":
        return
    seeded = [each for each in repeat.one.sources if each["what"] == "seed"]
    loose = [each for each in repeat.one.sources if "without a seed" in each["what"]]
    if not seeded:
        return
    told = sorted({f"{each['what']} ({each['path'].rpartition('/')[2]}:{each['line']})" for each in loose})
    fact = f"seeded by the job: {', '.join(sorted({each['of'] for each in seeded}))}; yet two runs are equal only with "
    fact += "every generator seeded" + (f"; made without a seed: {', '.join(told[:3])}" if told else "")
    yield Sighting(Place(rank=place.rank, step=place.step), fact)


def _what(place: Difference, origin: Origin | None) -> str:
    """What differs, and the operation from which that spreads."""
    if place.path:
        return f"from {place.item.kind} {place.item.name} on they do not even do the same things"
    of = f"{place.differing[0]:,} of {place.differing[1]:,} " if place.differing[1] > 1 else ""
    what = {
        "init": "parameters", "batch": "parts of a batch", "in": "inputs of the model", "mid": "inputs of a module",
        "out": "outputs of modules", "aside": "outputs of modules", "loss": "the loss", "grad": "gradients",
        "reduced": "gradients after the ranks' sum", "hyper": "the optimizer's settings",
        "held": "parameters, between the update and the next step", "param": "parameters", "buffer": "buffers",
    }[place.item.kind]  # fmt: skip
    first = f", first {place.item.name.partition('#')[0]}" if place.item.kind not in {"loss", "batch", "hyper"} else ""
    return f"{of}{what} differ{'s' if what == 'the loss' else ''}{first}" + (
        f"; {_operation(origin)}" if origin else ""
    )


def _operation(origin: Origin) -> str:
    name = origin.op.partition(".")[0]
    match origin.how:
        case "random":
            return f"it begins with {name}, which draws from a generator"
        case "kernel":
            return f"it begins with {name}, which gives other numbers for the same ones"
        case _:
            return f"it comes in with {name}, from numbers that no operation of torch has made"


def _because(repeat: Repeat) -> str:
    held = repeat.explained
    if held is None:
        return "what it comes from was not found"
    before, after = held.seconds
    cost = f"; a step then takes {number(after / before)} times as long" if before and after else ""
    samples = repeat.reordered
    order = "; the samples are the same, in another order" if samples is not None and samples > 0.95 else ""
    return f"equal with {HELD[held.what]}{order}{cost if held.what in {'threads', 'deterministic', 'workers'} else ''}"


def _without_steps(repeat: Repeat) -> str:
    ended = repeat.ends[0]
    how = f"it ended with {ended.code}" if not ended.late else "it was ended by --timeout"
    last = f": {ended.said[-1][:200]}" if ended.said and ended.code else ""
    return f"no step of a training was seen in the job, and {how}{last}"
