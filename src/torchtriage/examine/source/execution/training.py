"""One execution of a program that trains, and what rules ask of it."""

from __future__ import annotations

import ast
import re
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.autograd import Parameter
from torchtriage.examine.source.execution.callers import UnseenCaller
from torchtriage.examine.source.execution.loading import Reading
from torchtriage.examine.source.execution.lore import MODULE, lore
from torchtriage.examine.source.execution.registration import bare
from torchtriage.examine.source.execution.values import Object, Spot
from torchtriage.examine.source.nodes import names_in, nodes_in
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.text import Definition

_SCALING = re.compile(r"scaler|loss_?scale|scale_?loss|unscale", re.IGNORECASE)
_ASKS_FOR_INPUT = frozenset({"requires_grad_", "retain_grad"})
E = TypeVar("E", bound=events.Event)


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
        return {Spot(path, node).key for (path, _), node in links.items()}

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
                mine = [each for each in mine if not _is_passed_over(each, mine)]
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

    def texts_of_project(self, path: Path) -> list[bytes]:
        """The texts of the files of the project that PATH is one of; what is found here depends on them from now on."""
        links = self.executor.links
        found = [*links.texts_of_project(path)]
        self.script.links.used.update(links.used)
        return found

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

    def asks_for_input(self, backward: events.Backward) -> bool:
        """Whether the function around BACKWARD asks for the gradient of an input: saliency maps, adversarial examples.

        Not `for p in model.parameters(): p.requires_grad_()`, which thaws layers.
        """
        inside = [*ast.walk(self.code_around(backward.spot))]
        loops = [each for each in inside if isinstance(each, ast.For)]
        thawed = {name for each in loops if "parameters" in names_in(each.iter) for name in names_in(each.target)}
        calls = (each.func for each in inside if isinstance(each, ast.Call) and not each.args and not each.keywords)
        asked = [each for each in calls if isinstance(each, ast.Attribute) and each.attr in _ASKS_FOR_INPUT]
        switches = (each.targets[0] for each in inside if isinstance(each, ast.Assign) and _is_true(each.value))
        attributes = (each for each in switches if isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name))
        asked += [each for each in attributes if each.attr == "requires_grad"]
        return any(not isinstance(each.value, ast.Name) or each.value.id not in thawed for each in asked)

    def in_loop(self, event: events.Event, outside: Iterable[ast.AST] = ()) -> Spot:
        """What of the way to EVENT the innermost loop around it does itself: the call of a helper.

        OUTSIDE: code whose own loops do not count.
        """
        nodes = [self.executor.loop_nodes[loop] for loop, _ in event.loops]
        around = [each for each in nodes if not any(id(each) in nodes_in(code) for code in outside)]
        inside = nodes_in(around[-1]) if around else frozenset()
        return next((Spot(*each) for each in event.spot.chain if id(each[1]) in inside), event.spot)

    def calls(self, spot: Spot) -> list[str]:
        """The code of the calls that led to SPOT: `self.run_phase("val", loader)`."""
        return [ast.unparse(each) for _, each in spot.calls if isinstance(each, ast.Call)]


def _is_true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _is_passed_over(forward: events.Forward, others: list[events.Forward]) -> bool:
    """Whether one of OTHERS has called the model of FORWARD again, in a loop that FORWARD stands before: FORWARD was to
    show a shape, or how good the model is before it is trained.
    """
    again = (each for each in others if bare(each.model) is bare(forward.model))
    return any(len(each.loops) > len(forward.loops) for each in again)


def _has_mode(layer: Object) -> bool:
    """Whether LAYER itself behaves otherwise in train mode, or is none of torch's own."""
    last = layer.made.rpartition(".")[2]
    if last.startswith("BatchNorm") and layer.argument("track_running_stats", 4, True) is False:
        return False  # of the batch in either mode: few-shot learning
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
