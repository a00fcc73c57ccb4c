"""A file as the program of a training: what happens when it is executed, on either choice at unknown conditions."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import CannotSee, Sighting, view
from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.executor import MOST, SECONDS, Executor, Takes
from torchtriage.examine.source.execution.imports import FILES
from torchtriage.examine.source.execution.lore import lore
from torchtriage.examine.source.execution.values import Object, Parameter, Spot
from torchtriage.examine.source.linked import Links
from torchtriage.examine.source.script import Script

_TRAINS = b".backward("
_SCALING = re.compile(rb"scaler|loss_?scale|unscale", re.IGNORECASE)
TAKES: tuple[Takes, ...] = ("always", "never", "once")
E = TypeVar("E", bound=events.Event)


@dataclass(eq=False)
class Training:
    """One execution of SCRIPT that trains something."""

    script: Script
    executor: Executor

    def of(self, kind: type[E]) -> list[E]:
        """The events of KIND, in order."""
        return [each for each in self.executor.events if isinstance(each, kind)]

    @property
    def blind(self) -> set[str]:
        """Methods that were called on things that are not known."""
        return self.executor.blind

    @property
    def optimizers(self) -> list[Object]:
        return self.executor.optimizers

    @property
    def knows_optimizers(self) -> bool:
        """Whether every optimizer's parameters are known."""
        return bool(self.optimizers) and all(
            each.state.get("is_known") and not each.has_escaped for each in self.optimizers
        )

    def parameters_of(self, optimizer: Object) -> list[Parameter]:
        """The parameters that OPTIMIZER was given, as far as they are known."""
        return self.executor.optimized(optimizer)

    @cached_property
    def backwards(self) -> list[tuple[events.Forward, events.Backward]]:
        """Each forward pass with the first backward pass through the operations of it."""
        found: list[tuple[events.Forward, events.Backward]] = []
        waiting: list[events.Forward] = []
        for event in self.executor.events:
            if isinstance(event, events.Forward):
                waiting.append(event)
            elif isinstance(event, events.Backward):
                mine = [each for each in waiting if each.grad and _made_of(event, each, self.executor)]
                found += [(each, event) for each in mine]
                waiting = [each for each in waiting if each not in mine][-50:]
        return found

    @property
    def speaks_of_scaling(self) -> bool:
        """Whether anything in the program may scale a loss: a scaler of any origin, or a factor of its own."""
        texts = (self.script.text.data, *(each.data for each in self.executor.links.used.values()))
        return bool(self.blind & {"unscale_", "update", "backward"}) or any(map(_SCALING.search, texts))

    def has_modes(self, model: Object) -> bool:
        """Whether MODEL has layers that behave otherwise in train mode, or is none of the project's own."""
        rows = lore()["mode_layers"]
        return any(
            each.made.rpartition(".")[2] in rows or not each.made.startswith("torch.nn.")
            for each in self.executor.modules(model)
            if each.made and each.made != "torch.nn.Module"
        )

    def last_change(self, model: Object, before: events.Event) -> events.ModeChange | None:
        """The last change of the mode of MODEL, or of what it stands in, ahead of the event BEFORE."""
        changes = self.executor.events[: self.executor.events.index(before)]
        of_model = (each for each in reversed(changes) if isinstance(each, events.ModeChange))
        return next((each for each in of_model if model in self.executor.modules(each.module)), None)

    def functions(self, spot: Spot) -> list[str]:
        """The last words of the calls that led to SPOT."""
        found = [getattr(each, "func", None) for each in spot.calls]
        return [getattr(each, "attr", getattr(each, "id", "")) for each in found]


@dataclass(eq=False)
class Trainings:
    """The executions of one file: a fault counts where each of them that comes to its place has it."""

    script: Script
    runs: tuple[Training, ...]

    def sighting(self, spot: Spot, fact: str = "") -> Sighting:
        """A sighting at SPOT, in this file or in another one of the project."""
        if spot.path == self.script.text.path:
            return self.script.seen(spot.node, fact)
        return Sighting(Place(path=spot.path, line=spot.line, end_line=getattr(spot.node, "end_lineno", None)), fact)


@view(Trainings, of=Script)
def trainings(script: Script) -> Iterator[Trainings]:
    if not _is_program(script):
        return
    links = Links(script.text.path, script.facts, trains=True)
    if not _may_train(script, links):
        return
    tree = script.text.parse()
    runs = [Training(script, Executor(script.text.path, tree, links, takes=takes).execute()) for takes in TAKES]
    script.links.used.update(links.used)
    script.links.absent += links.absent
    trained = tuple(each for each in runs if each.of(events.Backward) or "backward" in each.blind)
    if trained and not all(each.executor.is_finished for each in runs):
        raise CannotSee(
            f"the program was not followed to its end: it takes more than {MOST:,} steps or {SECONDS:g} s to execute",
            "Check a script that trains on fewer options, or run it: torchtriage run -- python …",
        )
    if trained:
        yield Trainings(script, trained)


def _made_of(backward: events.Backward, forward: events.Forward, executor: Executor) -> bool:
    """Whether the graph of BACKWARD leads to a parameter that FORWARD went through, in the same iteration."""
    own = {parameter for each in forward.called for parameter in executor.own_parameters(each).values()}
    return bool(own & backward.loss.graph) and (
        not forward.loops
        or forward.loops == backward.loops[: len(forward.loops)]
        or backward.loops == forward.loops[: len(backward.loops)]
    )


def _is_program(script: Script) -> bool:
    """Whether the file is run by itself: it asks for that, or trains at its top level or by a call from there.

    A module of a package, which imports its neighbours by a relative name, cannot be run so.
    """
    if b"__main__" in script.text.data:
        return True
    module = script.facts.scopes[0]
    is_of_package = any(name.startswith(".") for name in script.facts.imports)
    acts = any(isinstance(each.statement, ast.Expr) or each.block.kind == "loop" for each in module.calls)
    return _TRAINS in script.text.data and acts and not is_of_package


def _may_train(script: Script, links: Links) -> bool:
    """Whether the file, or one of the project that it imports, calls backward; of large packages few are looked at."""
    if _TRAINS in script.text.data:
        return True
    if links.own is None:
        return False
    waiting, seen = [(links.own, tuple(script.facts.imports))], set[Path]()
    while waiting and len(seen) < FILES:
        importer, names = waiting.pop(0)
        for name in names:
            found = links.file(name.removesuffix(".*"), importer)
            if found is None or found[0].path in seen:
                continue
            file = found[0]
            seen.add(file.path)
            if _TRAINS in file.content:
                return True
            waiting.append((file.path, file.imports))
    return False


Facts = Iterator[tuple[Spot, str]]
"""Where something is wrong, and what."""
Find = Callable[[Training], Facts]


def shown(trainings: Trainings, find: Find) -> Iterator[Sighting]:
    """What FIND sees in any execution: that it can happen is enough."""
    found = {_key(spot): (spot, fact) for run in trainings.runs for spot, fact in find(run)}
    for spot, fact in found.values():
        yield trainings.sighting(spot, fact)


def certain(trainings: Trainings, find: Find, *, where_reached: bool = False) -> Iterator[Sighting]:
    """What FIND sees, with its place, in every execution: whatever the conditions that cannot be known come to.

    where_reached: an execution that does not come to the place counts as if it had seen it: what is done there is
    wrong by itself, and not because something else is missing.
    """
    runs = [each for each in trainings.runs if each.executor.takes != "once"]
    found = [{_key(spot): (spot, fact) for spot, fact in find(run)} for run in runs]
    reached = [{_key(each.spot) for each in run.executor.events} for run in runs]
    for key, (spot, fact) in {key: value for each in reversed(found) for key, value in each.items()}.items():
        may_miss = where_reached and any(key in each for each in reached)
        if all(key in mine or (may_miss and key not in places) for mine, places in zip(found, reached, strict=True)):
            yield trainings.sighting(spot, fact)


def _key(spot: Spot) -> tuple[str, int, int]:
    return spot.path, spot.line, int(getattr(spot.node, "col_offset", 0))
