"""A file as the program of a training: what happens when it is executed, on either choice at unknown conditions."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
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

_TRAINS = re.compile(rb"\.backward\(|\bTrainer\b")
"""What calls backward, by itself or for the program."""
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
        return bool(self.blind & {"unscale_", "update", "backward"}) or self.mentions(_SCALING)

    def mentions(self, words: re.Pattern[bytes]) -> bool:
        """Whether one of the WORDS stands anywhere in the files of the program."""
        texts = (self.script.text.data, *(each.data for each in self.executor.links.used.values()))
        return any(map(words.search, texts))

    def is_dropped(self, spot: Spot) -> bool:
        """Whether nobody gets what the call at SPOT gives."""
        return id(spot.node) in self.executor.dropped

    @property
    def batch_loops(self) -> set[int]:
        """The loops of which every iteration goes back through a graph itself."""
        return {each.loops[-1][0] for each in self.of(events.Backward) if each.loops}

    @property
    def loader_loops(self) -> set[int]:
        """The loops over a loader."""
        return {each.loops[-1][0] for each in self.of(events.Iteration) if each.loops}

    @cached_property
    def loaders(self) -> dict[int, Object]:
        """Of each event, by its identity, the loader of the innermost loop around it that goes over one."""
        found: dict[int, Object] = {}
        under: dict[tuple[tuple[int, int], ...], Object] = {}
        for event in self.executor.events:
            if isinstance(event, events.Iteration) and event.loops:
                under[(*event.loops[:-1], (event.loops[-1][0], -1))] = event.loader
            for depth in range(len(event.loops), 0, -1):
                key = (*event.loops[: depth - 1], (event.loops[depth - 1][0], -1))
                if key in under:
                    found[id(event)] = under[key]
                    break
        return found

    @cached_property
    def trained_loaders(self) -> set[int]:
        """The loaders on whose batches something is trained."""
        backwards = self.of(events.Backward)
        return {id(self.loaders[id(each)]) for each in backwards if id(each) in self.loaders}

    def is_evaluation(self, forward: events.Forward) -> bool:
        """Whether FORWARD goes over data that nothing is trained on, without a graph."""
        loader = self.loaders.get(id(forward))
        return not forward.grad and loader is not None and id(loader) not in self.trained_loaders

    @property
    def replicas(self) -> list[Object]:
        """The models in DistributedDataParallel."""
        return [each for each in self.executor.wrappers if each.made in lore()["wrappers"]["replicas"]]

    def every_turn(self, found: Iterable[E]) -> list[E]:
        """Of events FOUND, those that happen in each iteration of a loop over batches, as often as in the first."""
        turns: dict[int, set[tuple[tuple[int, int], ...]]] = {}
        for each in self.of(events.Backward):
            if each.loops:
                turns.setdefault(each.loops[-1][0], set()).add(each.loops)
        places: dict[tuple[int, int], dict[tuple[tuple[int, int], ...], list[E]]] = {}
        for event in found:
            for depth, (loop, _) in enumerate(event.loops, start=1):
                if event.loops[:depth] in turns.get(loop, ()):
                    mine = places.setdefault((loop, id(event.spot.node)), {})
                    mine.setdefault(event.loops[:depth], []).append(event)
        return [
            event
            for (loop, _), seen in places.items()
            if len(turns[loop]) > 1 and turns[loop] == seen.keys()
            for event in min(seen.values(), key=len)
        ]

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

    def calls(self, spot: Spot) -> list[str]:
        """The code of the calls that led to SPOT: `self.run_phase("val", loader)`."""
        return [ast.unparse(each) for _, each in spot.calls if isinstance(each, ast.Call)]


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
    runs: list[Training] = []
    for takes in TAKES:
        runs.append(Training(script, Executor(script.text.path, tree, links, takes=takes).execute()))
        if not runs[0].executor.decisions:  # every condition is known: the others would go the same way
            break
    script.links.used.update(links.used)
    script.links.absent += links.absent
    trained = tuple(each for each in runs if each.of(events.Backward) or "backward" in each.blind)
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
    return _TRAINS.search(script.text.data) is not None and acts and not is_of_package


def _may_train(script: Script, links: Links) -> bool:
    """Whether the file, or one of the project that it imports, calls backward; of large packages few are looked at."""
    if _TRAINS.search(script.text.data):
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
            if _TRAINS.search(file.content):
                return True
            waiting.append((file.path, file.imports))
    return False


Facts = Iterator[tuple[Spot, str]]
"""Where something is wrong, and what."""
Find = Callable[[Training], Facts]


def shown(trainings: Trainings, find: Find, *, throughout: bool = False) -> Iterator[Sighting]:
    """What FIND sees in any execution: that it can happen is enough.

    throughout: conditions that cannot be known have to come out the same each time: what is taken over from a
    checkpoint in a loop over its parts would be taken over for the first one only.
    """
    runs = [each for each in trainings.runs if not throughout or each.executor.takes != "once"]
    found = {_key(spot): (spot, fact) for run in runs for spot, fact in find(run)}
    for spot, fact in found.values():
        yield trainings.sighting(spot, fact)


def certain(trainings: Trainings, find: Find, *, where_reached: bool = False) -> Iterator[Sighting]:
    """What FIND sees, with its place, in every execution: whatever the conditions that cannot be known come to.

    where_reached: an execution that does not come to the place counts as if it had seen it: what is done there is
    wrong by itself, and not because something else is missing.
    """
    runs = [each for each in trainings.runs if each.executor.takes != "once"]
    if not where_reached and not all(each.executor.is_finished for each in runs):
        raise CannotSee(
            f"the program was not followed to its end: it takes more than {MOST:,} steps or {SECONDS:g} s to execute",
            "Check a script that trains on fewer options, or run it: torchtriage run -- python …",
        )
    found = [{_key(spot): (spot, fact) for spot, fact in find(run)} for run in runs]
    reached = [{_key(each.spot) for each in run.executor.events} for run in runs]
    for key, (spot, fact) in {key: value for each in reversed(found) for key, value in each.items()}.items():
        may_miss = where_reached and any(key in each for each in reached)
        if all(key in mine or (may_miss and key not in places) for mine, places in zip(found, reached, strict=True)):
            yield trainings.sighting(spot, fact)


def wherever(trainings: Trainings, kind: type[E], say: Callable[[E], str]) -> Iterator[Sighting]:
    """Every event of KIND, wherever an execution comes to it: it is wrong by itself, and SAY says how."""

    def find(training: Training) -> Facts:
        return ((each.spot, say(each)) for each in training.of(kind))

    yield from certain(trainings, find, where_reached=True)


def _key(spot: Spot) -> tuple[str, int, int]:
    return spot.path, spot.line, int(getattr(spot.node, "col_offset", 0))
