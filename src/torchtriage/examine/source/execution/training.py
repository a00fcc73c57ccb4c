"""A file as the program of a training: what happens when it is executed, on either choice at unknown conditions."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Hashable, Iterable, Iterator
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeAlias, TypeVar

from torchtriage.core.evidence import Edit, Inconclusive, Place
from torchtriage.examine.detector import CannotSee, Sighting, view
from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.autograd import Parameter
from torchtriage.examine.source.execution.callers import EACH_UNSEEN, MOST_UNSEEN, UnseenCaller
from torchtriage.examine.source.execution.conditions import Takes
from torchtriage.examine.source.execution.entries import Entries
from torchtriage.examine.source.execution.executor import MOST, SECONDS
from torchtriage.examine.source.execution.imports import FILES
from torchtriage.examine.source.execution.loading import Reading
from torchtriage.examine.source.execution.lore import MODULE, lore
from torchtriage.examine.source.execution.values import Object, Spot
from torchtriage.examine.source.linked import Links
from torchtriage.examine.source.nodes import names_in, nodes_in
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.text import Definition

_TRAINS = re.compile(rb"\.backward\(|\bTrainer\b")
"""What calls backward, by itself or for the program."""
_SCALING = re.compile(r"scaler|loss_?scale|scale_?loss|unscale", re.IGNORECASE)
TAKES: tuple[Takes, ...] = ("always", "never", "once")
E = TypeVar("E", bound=events.Event)
Mend = Callable[[Script, ast.AST], tuple[Edit, ...]]
Fact: TypeAlias = tuple[Spot, str] | tuple[Spot, str, Mend]
"""Where something is wrong, what, and the edits that put it right, where there are some."""


@dataclass(eq=False)
class Training:
    """One execution of SCRIPT that trains something."""

    script: Script
    executor: UnseenCaller

    def of(self, kind: type[E]) -> list[E]:
        """The events of KIND, in order."""
        return self.executor.events_of(kind)

    @property
    def blind(self) -> set[str]:
        """Methods that were called on things that are not known."""
        return self.executor.blind

    @property
    def readings(self) -> list[Reading]:
        """What workers of loaders do."""
        return self.executor.readings

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
    def reached(self) -> set[tuple[str, int, int]]:
        """Every place that the execution has come to, by the calls that led to what happens, too."""
        links = {(path, id(node)): node for each in self.executor.events for path, node in each.spot.chain}
        return {key_of(Spot(path, node)) for (path, _), node in links.items()}

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
        return bool(self.blind & {"unscale_", "update", "backward"}) or self.names(_SCALING)

    @cached_property
    def _names(self) -> frozenset[str]:
        """The names in the code that was executed: of a program also those at the top level of its file."""
        roots: list[ast.AST] = [each.node for each in self.executor.visited.values()]
        roots += [self.script.tree] if self.executor.entry is None else []
        return frozenset().union(*map(names_in, roots))

    def names(self, words: re.Pattern[str]) -> bool:
        """Whether one of the WORDS is in a name of the code that was executed."""
        return any(map(words.search, self._names))

    def mentions(self, words: re.Pattern[bytes]) -> bool:
        """Whether one of the WORDS stands anywhere in the files of the program."""
        if words not in self.script.mentioned:  # each of dozens of functions is asked, and the texts are the same
            others = self.executor.links.used.values()
            found = words.search(self.script.text.data) is not None or any(each.mentions(words) for each in others)
            self.script.mentioned[words] = found
        return self.script.mentioned[words]

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
        """Whether FORWARD goes over data that nothing is trained on, without a graph or in a loop of its own."""
        loader = self.loaders.get(id(forward))
        is_apart = not forward.grad or (bool(forward.loops) and forward.loops[-1][0] not in self.batch_loops)
        return is_apart and loader is not None and id(loader) not in self.trained_loaders

    @property
    def replicas(self) -> list[Object]:
        """The models in DistributedDataParallel."""
        return [each for each in self.executor.wrappers if each.made in lore()["wrappers"]["replicas"]]

    @cached_property
    def _turns(self) -> dict[int, list[Hashable]]:
        """Of each event, by its identity, for each loop around it the iteration, and which pass of the loop it is of:
        an epoch may go through one for statement for training and for evaluation, in a helper.
        """
        passes: dict[tuple[Hashable, ...], list[int]] = {}
        found: dict[int, list[Hashable]] = {}
        for event in self.executor.events:
            mine = found[id(event)] = []
            for depth, (loop, count) in enumerate(event.loops):
                one = passes.setdefault((loop, mine[-1] if depth else None), [0, -1])
                one[0] += count < one[1]
                one[1] = count
                mine.append((loop, count, one[0], mine[-1] if depth else None))
        return found

    def every_turn(self, found: Iterable[E]) -> list[E]:
        """Of events FOUND, those that happen in each iteration of a loop over batches, as often as in the first."""
        turns: dict[int, set[Hashable]] = {}
        for each in self.of(events.Backward):
            if each.loops:
                turns.setdefault(each.loops[-1][0], set()).add(self._turns[id(each)][-1])
        places: dict[tuple[int, int], dict[Hashable, list[E]]] = {}
        for event in found:
            for (loop, _), turn in zip(event.loops, self._turns[id(event)], strict=True):
                if turn in turns.get(loop, ()):
                    places.setdefault((loop, id(event.spot.node)), {}).setdefault(turn, []).append(event)
        return [
            event
            for (loop, _), seen in places.items()
            if len(turns[loop]) > 1 and turns[loop] == seen.keys()
            for event in min(seen.values(), key=len)
        ]

    def batch_loop(self, event: events.Event) -> int:
        """The loop around EVENT that goes back through a graph in each iteration, the innermost one; 0 for none."""
        return next((loop for loop, _ in reversed(event.loops) if loop in self.batch_loops), 0)

    def has_modes(self, model: Object) -> bool:
        """Whether MODEL has layers that behave otherwise in train mode, or is none of the project's own."""
        return any(_has_mode(each) for each in self.executor.modules(model) if each.made not in ("", MODULE))

    def definitions_around(self, spot: Spot) -> list[Definition]:
        """The functions and classes that SPOT stands in, of whatever file of the project, the innermost last."""
        if spot.path == self.script.text.path:
            return self.script.definitions_around(spot.line)
        links = self.executor.links
        other = (each.definitions for each in links.used.values() if links.shown(each.path) == spot.path)
        return [each for each in next(other, []) if each.lineno <= spot.line <= (each.end_lineno or 0)]

    def code_around(self, spot: Spot) -> ast.AST:
        """The function or class that SPOT stands in, the innermost one; at the top level of the file all of it."""
        return next(iter(self.definitions_around(spot)[-1:]), self.script.tree)

    def code(self, spot: Spot) -> str:
        """The code at SPOT, and the name of the function that it stands in."""
        names = [each.name for each in self.definitions_around(spot)[-1:]]
        return " ".join((ast.unparse(spot.node), *names))

    def line(self, spot: Spot) -> str:
        """The line of SPOT and the one above it, in the file that is checked."""
        if spot.path != self.script.text.path:
            return ""
        return "\n".join(self.script.text.line(each) for each in range(max(1, spot.line - 1), spot.line + 1))

    def events_before(self, last: events.Event) -> list[events.Event]:
        """What happens before LAST."""
        return self.executor.events[: self.executor.events.index(last)]

    def events_after(self, first: events.Event) -> list[events.Event]:
        """What happens after FIRST."""
        return self.executor.events[self.executor.events.index(first) + 1 :]

    def events_between(self, first: events.Event, last: events.Event) -> list[events.Event]:
        """What happens from FIRST on until LAST; nothing where LAST is the earlier one."""
        every = self.executor.events
        return every[every.index(first) : every.index(last)]

    def resumes_before(self, event: events.Event) -> bool:
        """Whether a state is taken over before EVENT."""
        return any(isinstance(each, events.Restore) for each in self.events_before(event))

    def last_change(self, model: Object, before: events.Event) -> events.ModeChange | None:
        """The last change of the mode of MODEL, or of what it stands in, ahead of the event BEFORE."""
        of_model = (each for each in reversed(self.events_before(before)) if isinstance(each, events.ModeChange))
        return next((each for each in of_model if model in self.executor.modules(each.module)), None)

    def in_loop(self, event: events.Event) -> Spot:
        """What of the way to EVENT the innermost loop around it does itself: the call of a helper."""
        inside = nodes_in(self.executor.loop_nodes[event.loops[-1][0]]) if event.loops else frozenset()
        return next((Spot(*each) for each in event.spot.chain if id(each[1]) in inside), event.spot)

    def calls(self, spot: Spot) -> list[str]:
        """The code of the calls that led to SPOT: `self.run_phase("val", loader)`."""
        return [ast.unparse(each) for _, each in spot.calls if isinstance(each, ast.Call)]


@dataclass(eq=False)
class Trainings:
    """The executions of one file: a fault counts where each of them that comes to its place has it."""

    script: Script
    runs: tuple[Training, ...]
    is_program: bool = True
    """Whether the file was executed as a program, and not a function of it that nothing in sight calls."""
    others: tuple[Training, ...] = ()
    """The executions in which nothing is trained: with `--fp16`, by apex."""

    def sighting(self, fact: Fact) -> Sighting:
        """The sighting of FACT, in this file, where it may be mended, or in another one of the project."""
        spot, told = fact[:2]
        if spot.path == self.script.text.path:
            return self.script.seen(spot.node, told, fact[2](self.script, spot.node) if len(fact) > 2 else ())
        return Sighting(Place(path=spot.path, line=spot.line, end_line=getattr(spot.node, "end_lineno", None)), told)


def note_unfinished(script: Script) -> Inconclusive | None:
    """How many functions of SCRIPT that nothing in sight calls were not followed to their end."""
    taken = (each for each in script.taken.get(Trainings, ()) if isinstance(each, Trainings))
    seen = [each for each in taken if each.runs[0].executor.caller is not None]
    open_ = sum(not all(run.executor.is_finished for run in each.runs) for each in seen)
    if not open_:
        return None
    return Inconclusive(
        "source/execution",
        f"{open_} of {len(seen)} functions that nothing here calls were not followed to their end: "
        f"one takes more than {EACH_UNSEEN:,} steps, or together they take more than {MOST_UNSEEN:,}",
        "Check the script that trains with them: what it calls is followed by itself.",
    )


@view(Trainings, of=Script)
def trainings(script: Script) -> Iterator[Trainings]:
    links = Links(script.text.path, script.facts, trains=True)
    is_program = _is_program(script)
    runs: list[UnseenCaller] = []
    for takes in TAKES:
        made = UnseenCaller(script.text.path, script.tree, links, takes=takes)
        runs.append(made.execute("__main__" if is_program else "a module"))
        is_open = is_program or any(each.spot.path == script.text.path for each in runs[0].events)
        if not runs[0].decisions or not is_open:  # the others would go the same way
            break
    trained = tuple(
        Training(script, each) for each in runs if each.events_of(events.Backward) or "backward" in each.blind
    )
    if is_program and trained and _may_train(script, links):
        others = (each for each in runs if all(each is not one.executor for one in trained))
        yield Trainings(script, trained, others=tuple(Training(script, each) for each in others))
    else:  # an evaluation, or what a module does when it is imported
        yield Trainings(script, tuple(Training(script, each) for each in runs), is_program=False)
    yield from _entries(script, runs)
    script.links.used.update(links.used)
    script.links.absent += links.absent


_TEST = re.compile(r"(^|/)(test_[^/]*|[^/]*_test|conftest)\.py$")
"""Files of tests: what they do with models is no training."""


def _entries(script: Script, modules: list[UnseenCaller]) -> Iterator[Trainings]:
    """The functions of the file that its program does not come to, each executed by itself."""
    if _TEST.search(script.text.path):
        return
    entries = Entries(script.roles)
    module = copy(modules[0])
    module.entered = set().union(*(each.entered for each in modules))
    ways: dict[tuple[int, int], list[UnseenCaller]] = {}
    for takes in TAKES:
        # where every condition is known, or nothing happens, the others would go the same way
        open_ = {key for key, runs in ways.items() if runs[0].decisions and (runs[0].events or runs[0].asks_rank)}
        if takes != TAKES[0] and not open_:
            break
        module.takes, module.unseen = takes, 0
        for key, made in module.begin(entries, open_ if ways else None):
            ways.setdefault(key, []).append(made)
    for runs in ways.values():
        trained = (Training(script, each) for each in runs)
        yield Trainings(script, tuple(trained), is_program=False)


def _has_mode(layer: Object) -> bool:
    """Whether LAYER itself behaves otherwise in train mode, or is none of torch's own."""
    last = layer.made.rpartition(".")[2]
    drops = layer.argument("dropout", 1 if last == "MultiheadAttention" else None, 0) != 0
    return last in lore()["mode_layers"] or not layer.made.startswith("torch.nn.") or drops


def _made_of(backward: events.Backward, forward: events.Forward, executor: UnseenCaller) -> bool:
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


Facts = Iterator[Fact]
Find = Callable[[Training], Facts]


def shown(trainings: Trainings, find: Find, *, throughout: bool = False) -> Iterator[Sighting]:
    """What FIND sees in any execution: that it can happen is enough.

    throughout: conditions that cannot be known have to come out the same each time: what is taken over from a
    checkpoint in a loop over its parts would be taken over for the first one only.
    """
    runs = [each for each in trainings.runs if not throughout or each.executor.takes != "once"]
    found = {key_of(fact[0]): fact for run in runs for fact in find(run)}
    for fact in found.values():
        yield trainings.sighting(fact)


def certain(
    trainings: Trainings, find: Find, *, where_reached: bool = False, among: Callable[[Training], bool] | None = None
) -> Iterator[Sighting]:
    """What FIND sees, with its place, in every execution: whatever the conditions that cannot be known come to.

    where_reached: an execution that does not come to the place counts as if it had seen it: what is done there is
    wrong by itself, and not because something else is missing. among: which executions count: with `--amp` one has a
    scaler, and the other has none.
    """
    counted = [each for each in trainings.runs if among is None or among(each)]
    runs = [each for each in counted if each.executor.takes != "once"] or counted  # --no-cuda
    if not runs:
        return
    if not where_reached and not all(each.executor.is_finished for each in runs):
        if not trainings.is_program:
            return
        raise CannotSee(
            f"the program was not followed to its end: it takes more than {MOST:,} steps or {SECONDS:g} s to execute",
            "Check a script that trains on fewer options, or run it: torchtriage run -- python …",
        )
    found = [{key_of(fact[0]): fact for fact in find(run)} for run in runs]
    reached = [run.reached for run in runs] if where_reached else [set() for _ in runs]
    for key, fact in {key: value for each in reversed(found) for key, value in each.items()}.items():
        may_miss = where_reached and any(key in each for each in reached)
        if all(key in mine or (may_miss and key not in places) for mine, places in zip(found, reached, strict=True)):
            yield trainings.sighting(fact)


def by_default(trainings: Trainings, find: Find) -> Iterator[Sighting]:
    """What FIND sees in every execution that comes to the place, or when the program is started without options."""
    seen = list(certain(trainings, find, where_reached=True))
    yield from seen
    places = {(each.place.path, each.place.line, each.place.column) for each in seen}
    plain = [each for each in trainings.runs if each.executor.takes == "never" and trainings.is_program]
    found = (trainings.sighting(fact) for run in plain for fact in find(run))
    yield from (each for each in found if (each.place.path, each.place.line, each.place.column) not in places)


def wherever(trainings: Trainings, kind: type[E], say: Callable[[E], str]) -> Iterator[Sighting]:
    """Every event of KIND, wherever an execution comes to it: it is wrong by itself, and SAY says how."""

    def find(training: Training) -> Facts:
        return ((each.spot, say(each)) for each in training.of(kind))

    yield from certain(trainings, find, where_reached=True)


def key_of(spot: Spot) -> tuple[str, int, int]:
    """The place of SPOT, the same in each execution."""
    return spot.path, spot.line, int(getattr(spot.node, "col_offset", 0))
