"""What the source alone shows about training on several devices."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.events import Ring
from torchtriage.examine.source.roles import Part
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.steps import TrainingStep

_SAMPLER = "torch.utils.data.distributed.DistributedSampler"


@detector("source/sampler-epoch-not-set")
def sampler_epoch_not_set(step: TrainingStep) -> Iterator[Sighting]:
    """A shuffling DistributedSampler is used over several epochs without set_epoch."""
    script = step.script
    if step.epochs is None or step.hidden:
        return
    for loader in step.loaders():
        for sampler in _samplers(step, loader):
            if _is_faulty(step, loader, sampler) and sampler.made is not None and not _is_told(script):
                line = getattr(step.epochs.block.owner, "lineno", 0)
                yield script.seen(
                    sampler.made,
                    f"the epoch loop in line {line} never calls set_epoch: every epoch has the order of the first",
                )


def _is_faulty(step: TrainingStep, loader: Part, sampler: Part) -> bool:
    if sampler.made is None or loader.made is None or sampler.name != _SAMPLER or not _shuffles(sampler.made):
        return False
    if step.epochs is None or _is_made_anew(step, step.epochs, sampler.made):
        return False
    return not (step.script.shows(sampler.made, "sampler") or step.script.shows(loader.made, "loader"))


def _is_told(script: Script) -> bool:
    """Whether the file sets an epoch in some way: set_epoch under any name, or a store to sampler.epoch."""
    if any(script.calls("set_epoch")) or "set_epoch" in script.aside:
        return True
    return any(
        name.endswith(".epoch") and name != f"{scope.receiver}.epoch"
        for scope in script.facts.scopes
        for name in scope.stores
    )


def _is_made_anew(step: TrainingStep, epochs: Ring, made: ast.Call) -> bool:
    """Whether each epoch makes a sampler of its own, or its seed may be another one each time."""
    seed = next((keyword.value for keyword in made.keywords if keyword.arg == "seed"), None)
    if seed is not None and not isinstance(seed, ast.Constant):
        return True
    inside = (event.call for event in step.script.written.events(epochs) if event.call is not None)
    return any(call.node is made for call in inside)


def _samplers(step: TrainingStep, loader: Part) -> Iterator[Part]:
    for keyword in loader.made.keywords if loader.made is not None else ():
        if keyword.arg == "sampler" and loader.scope is not None:
            yield from step.script.roles.made(keyword.value, loader.scope, "sampler")


def _shuffles(made: ast.Call) -> bool:
    """The default is to shuffle; anything but a literal True may be False. A **mapping may hold it."""
    given = {keyword.arg: keyword.value for keyword in made.keywords}
    if None in given or len(made.args) > 3:
        return False
    shuffle = given.get("shuffle")
    return shuffle is None or (isinstance(shuffle, ast.Constant) and shuffle.value is True)
